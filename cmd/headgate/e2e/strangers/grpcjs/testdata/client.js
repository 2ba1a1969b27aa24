// Makes the calls that stdin lists, and prints how they ended. See strangers.Run.
"use strict";

// grpc-js comes second: in Node 18 it makes stdin non-blocking, and a read before all has arrived
// would fail with EAGAIN.
const task = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const grpc = require("@grpc/grpc-js");

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
