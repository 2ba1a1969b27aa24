"use strict";

// an ES module of a bundler has no require
const http = process.getBuiltinModule?.("node:http") ?? require("node:http");
const https = process.getBuiltinModule?.("node:https") ?? require("node:https");
const byFetch = require("./fetch.cjs");

const IDLE = 4000; // milliseconds; servers and proxies keep unused connections longer

exports.schemes = [...byFetch.schemes, "unix:"];
exports.soon = setImmediate;

/**
 * Returns a function that sends a request by node:http, over at most so many connections. A call
 * has its answer, a way to end it, and after an error whether it was sent.
 */
exports.open = (url, headers, { connections, agent, fetch }) => {
  if (fetch) return byFetch.open(url, headers, { fetch });
  const scheme = url.protocol === "https:" ? https : http;
  agent ??= new scheme.Agent({ keepAlive: true, maxSockets: connections, timeout: IDLE });
  const hostname = url.hostname.replace(/[[\]]/g, "");
  const [server, base] = url.protocol === "unix:"
    ? [{ socketPath: decodeURIComponent(url.pathname) }, ""]
    : [{ hostname, port: url.port }, url.pathname.replace(/\/$/, "")];
  // a list costs less than an object
  const fields = Object.entries({ host: url.host || "localhost", ...headers }).flat();
  return (method, path, body) => {
    const length = body ? ["content-length", Buffer.byteLength(body)] : [];
    const sending = scheme.request({
      ...server, agent, method, path: base + path, headers: [...fields, ...length],
    });
    const call = {};
    call.answer = new Promise((resolve, reject) => {
      const fail = (error) => {
        const { socket } = sending;
        const [{ syscall }] = error.errors ?? [error];
        call.sent ??= Boolean(socket) && !socket.connecting && !socket.secureConnecting &&
          syscall !== "connect" && syscall !== "getaddrinfo";
        reject(error);
      };
      call.end = (error) => {
        fail(error);
        sending.destroy();
      };
      sending.on("error", fail).on("response", (response) => {
        let text = "";
        response.setEncoding("utf8").on("error", fail).on("data", (part) => { text += part; });
        response.on("end", () => {
          const { statusCode: status, headers: { "retry-after": retryAfter } } = response;
          resolve({ status, retryAfter, text });
        });
      });
      sending.end(body);
    });
    return call;
  };
};
