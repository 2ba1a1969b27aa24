// Tests of middleware.md in the frameworks, with the server at HEADGATE_URL.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import express5 from "express";
import express4 from "express4";
import fastify from "fastify";
import { Hono } from "hono";

const page = readFileSync(new URL("middleware.md", import.meta.url), "utf8");
const code = [...page.matchAll(/```js\n(.*?)```/gs)].map((block) => block[1]).join("")
  .replace("http://127.0.0.1:8080", process.env.HEADGATE_URL)
  .replace('"headgate"', `"${new URL("headgate.cjs", import.meta.url)}"`);
const { limitExpress, limitFastify, limitHono } = await import(
  `data:text/javascript,${encodeURIComponent(code + "\nexport { limitExpress, limitFastify, limitHono };")}`
);

/** An app with "login" at /login and an unknown rule at /broken, as (path) => Response. */
const apps = {
  async hono() {
    const app = new Hono();
    for (const path of ["login", "broken"]) {
      app.get(`/${path}`, limitHono(path, () => "ip:192.0.2.1"), (c) => c.text("done"));
    }
    app.onError((error, c) => c.text(error.name, 500));
    return { get: (path) => app.request(path) };
  },
  async fastify() {
    const app = fastify({ trustProxy: true });
    for (const path of ["login", "broken"]) {
      app.get(`/${path}`, { onRequest: limitFastify(path) }, async () => "done");
    }
    const at = await app.listen({ port: 0, host: "127.0.0.1" });
    const headers = { "x-forwarded-for": "2001:db8::2" };
    return { get: (path) => fetch(at + path, { headers }), close: () => app.close() };
  },
  express4: () => expressApp(express4), // the address is that of the test
  express5: () => expressApp(express5, () => "ip:192.0.2.3"),
};

async function expressApp(express, key) {
  const app = express();
  for (const path of ["login", "broken"]) {
    app.get(`/${path}`, limitExpress(path, key), (req, res) => res.send("done"));
  }
  app.set("env", "test"); // which logs no errors
  const server = app.listen(0); // addresses are ::ffff:127.0.0.1
  await new Promise((resolve) => server.once("listening", resolve));
  const at = `http://127.0.0.1:${server.address().port}`;
  return { get: (path) => fetch(at + path), close: () => server.close() };
}

for (const [name, start] of Object.entries(apps)) {
  test(name, async (t) => {
    const { get, close } = await start();
    if (close) t.after(close);
    for (let left = 4; left >= 0; left--) {
      const response = await get("/login");
      assert.deepEqual([response.status, await response.text()], [200, "done"]);
      assert.equal(response.headers.get("ratelimit"), `"login";r=${left}`);
      assert.equal(response.headers.get("ratelimit-policy"), '"login";q=5');
    }
    const denied = await get("/login");
    const after = denied.headers.get("retry-after");
    assert.deepEqual([denied.status, await denied.text()], [429, "too many requests"]);
    assert.ok(Number(after) > 600 && Number(after) <= 720, after);
    assert.equal(denied.headers.get("ratelimit"), `"login";r=0;t=${after}`);
    const broken = await get("/broken");
    assert.equal(broken.status, 500); // not 404, which is the answer of the server
  });
}
