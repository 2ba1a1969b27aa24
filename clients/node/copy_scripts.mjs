// Puts the scripts of ../../redisstore into the package: there is one copy in the repository.

import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";

const to = new URL("./lua/", import.meta.url);
const from = new URL("../../redisstore/", import.meta.url);

rmSync(to, { recursive: true, force: true });
if (process.argv[2] !== "--remove") {
  mkdirSync(to);
  for (const name of readdirSync(from)) {
    if (name.endsWith(".lua")) copyFileSync(new URL(name, from), new URL(name, to));
  }
}
