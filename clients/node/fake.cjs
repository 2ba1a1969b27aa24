"use strict";

const { Client } = require("./headgate.cjs");

/**
 * A Client for tests, without a server. decide(request, operation) returns what differs from a
 * grant, such as { allowed: false, retry_after: 30 }. If it throws, the server is unavailable.
 */
class FakeClient extends Client {
  /** The requests so far, each with its operation: { operation, rule, key, ... }. */
  requests = [];

  constructor(decide = () => ({})) {
    const answer = (operation, request) => {
      this.requests.push({ operation, ...request });
      const { rule, limit = rule, cost = 1 } = request;
      const { allowed = true, ...rest } = decide(request, operation);
      return {
        allowed, rule, limit, capacity: 1000, remaining: allowed ? 1000 - cost : 0,
        retry_after: allowed ? 0 : 1, reset_after: 1, wait: 0, id: "fake",
        permits: 1000, in_use: 1, ttl: 60, renewed: true, released: true, refunded: 0, limits: [], ...rest,
      };
    };
    super("http://fake.invalid", {
      fetch: async (url, { method, body }) => {
        const [operation, ...names] = url.split("/v1/")[1].split("/");
        const request = body ? JSON.parse(body) : {};
        if (method === "DELETE") {
          const [rule, key] = names.map(decodeURIComponent);
          answer("reset", { rule, key });
          return new Response(null, { status: 204 });
        }
        if (operation !== "take-all") return Response.json(answer(operation, request));
        const results = request.requests.map((one) => answer(operation, one));
        const retry_after = Math.max(...results.map((one) => one.retry_after));
        const allowed = results.every((one) => one.allowed);
        return Response.json({ allowed, retry_after, results });
      },
    });
  }
}

module.exports = { FakeClient };
