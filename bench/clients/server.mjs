// Measures the CPU of the client of headgate serve beside a pool of undici with as many connections
// and the global fetch, in alternating rounds. The server at URL must allow inline limits.
//
// usage: node bench/clients/server.mjs URL [SECONDS of a round] [ROUNDS]

import { createRequire } from "node:module";

const require = createRequire(new URL("../../clients/node/", import.meta.url));
const { Client } = require("headgate");
const { Pool } = require("undici");

const url = process.argv[2];
const seconds = Number(process.argv[3] ?? 1);
const rounds = Number(process.argv[4] ?? 5);
const connections = 10;
const limits = new Client(url, { timeout: 60 });
const pool = new Pool(url, { connections });
const send = (key) => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ limit: "1000000/s", key }),
});
const ways = {
  headgate: (key) => limits.take({ limit: "1000000/s", key }),
  undici: async (key) => (await pool.request({ path: "/v1/take", ...send(key) })).body.json(),
  fetch: async (key) => (await fetch(`${url}/v1/take`, send(key))).json(),
};

async function measure(way, callers) {
  let n = 0;
  const own = process.cpuUsage();
  const began = performance.now();
  await Promise.all(Array.from({ length: callers }, async () => {
    while (performance.now() < began + 1000 * seconds) {
      if (!(await way(`user:${n % 10_000}`)).allowed) throw new Error("denied");
      n++;
    }
  }));
  const { user, system } = process.cpuUsage(own);
  return { rate: n / (performance.now() - began), cpu: (user + system) / n };
}

for (const way of Object.values(ways)) await measure(way, 16); // warm up

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];
console.log("| callers | client | k/s | CPU us | it / undici: CPU (min-max) |\n|---|---|---|---|---|");
for (const callers of [1, 16, 64]) {
  const found = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, way] of Object.entries(ways)) found[name].push(await measure(way, callers));
  }
  for (const [name, cells] of Object.entries(found)) {
    const ratios = cells.map(({ cpu }, round) => cpu / found.undici[round].cpu);
    const text = [median(ratios), Math.min(...ratios), Math.max(...ratios)].map((ratio) => ratio.toFixed(2));
    console.log(`| ${callers} | ${name} | ${median(cells.map((cell) => cell.rate)).toFixed(2)} | ` +
      `${median(cells.map((cell) => cell.cpu)).toFixed(0)} | ${text[0]} (${text[1]}-${text[2]}) |`);
  }
}
process.exit(0);
