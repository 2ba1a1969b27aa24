// Makes the calls that stdin lists, and prints how they ended. See client_test.go.
"use strict";

const fs = require("node:fs");
const grpc = require("@grpc/grpc-js");

const task = JSON.parse(fs.readFileSync(0, "utf8"));
const clients = Array.from({ length: task.channels }, () => new grpc.Client(
  task.address, grpc.credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 }));
const bytes = (b) => b;

function run(call, i) {
  return new Promise((resolve) => {
    clients[i % clients.length].makeUnaryRequest(
      call.path, bytes, bytes, Buffer.from(call.message, "hex"), { deadline: Date.now() + 20000 },
      (error, message) => resolve(error
        ? { code: error.code, details: error.details, message: "" }
        : { code: 0, details: "", message: message.toString("hex") }));
  });
}

async function main() {
  let ends = [];
  if (task.together) {
    ends = await Promise.all(task.calls.map(run));
  } else {
    for (const [i, call] of task.calls.entries()) {
      ends.push(await run(call, i));
    }
  }
  clients.forEach((client) => client.close());
  process.stdout.write(JSON.stringify(ends));
}

main();
