"use strict";

const http = require("node:http");
const https = require("node:https");
const { urlToHttpOptions } = require("node:url");
const byFetch = require("./fetch.cjs");

const IDLE = 4000; // milliseconds; servers and proxies keep unused connections longer

exports.schemes = [...byFetch.schemes, "unix:"];

/**
 * Returns a function that sends a request by node:http, over at most so many connections. A call
 * has its answer, a way to end it, and whether it was sent.
 */
exports.open = (url, { connections, agent, fetch }) => {
  if (fetch) return byFetch.open(url, { fetch });
  const { Agent, request } = url.protocol === "https:" ? https : http;
  agent ??= new Agent({ keepAlive: true, maxSockets: connections, timeout: IDLE });
  const { hostname, port } = urlToHttpOptions(url);
  const [server, base] = url.protocol === "unix:"
    ? [{ socketPath: decodeURIComponent(url.pathname) }, ""]
    : [{ hostname, port }, url.pathname.replace(/\/$/, "")];
  return (method, path, headers, body) => {
    const call = { sent: false };
    call.answer = new Promise((resolve, reject) => {
      const length = body && { "content-length": Buffer.byteLength(body) };
      const sending = request({
        ...server, agent, method, path: base + path, headers: { ...headers, ...length },
      });
      call.end = (error) => {
        reject(error);
        sending.destroy();
      };
      const sent = () => { call.sent = true; };
      sending.on("socket", (socket) => {
        if (socket.connecting) socket.once(socket.encrypted ? "secureConnect" : "connect", sent);
        else sent();
      });
      sending.on("response", (response) => {
        let text = "";
        response.setEncoding("utf8").on("error", reject).on("data", (part) => { text += part; });
        response.on("end", () => {
          resolve({ status: response.statusCode, retryAfter: response.headers["retry-after"], text });
        });
      });
      sending.on("error", reject).end(body);
    });
    return call;
  };
};
