"""Makes the calls that stdin lists, and prints how they ended. See strangers.Run."""

import json
import sys

import grpc

task = json.load(sys.stdin)
channels = [
    grpc.insecure_channel(task["address"], options=[("grpc.use_local_subchannel_pool", 1)])
    for _ in range(task["channels"])
]


def start(i, call):
    method = channels[i % len(channels)].unary_unary(call["path"])
    return method.future(bytes.fromhex(call["message"]), timeout=20)


def end(future):
    error = future.exception()
    if error is not None:
        return {"code": error.code().value[0], "details": error.details(), "message": ""}
    return {"code": 0, "details": "", "message": future.result().hex()}


if task["together"]:
    futures = [start(i, call) for i, call in enumerate(task["calls"])]
    ends = [end(future) for future in futures]
else:
    ends = [end(start(i, call)) for i, call in enumerate(task["calls"])]
json.dump(ends, sys.stdout)
