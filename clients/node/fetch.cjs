"use strict";

exports.schemes = ["http:", "https:"];
exports.soon = setTimeout; // the edge runtime of Next.js has no setImmediate

/** Returns a function that sends a request by fetch, which may not say whether it was sent. */
exports.open = (url, headers, { fetch }) => {
  const base = url.href.replace(/\/$/, "");
  return (method, path, body) => {
    const stop = new AbortController();
    const send = async () => {
      const response = await (fetch ?? globalThis.fetch)(base + path, {
        method, headers, body, signal: stop.signal,
        redirect: "manual", // Workers have no "error"
        next: { revalidate: 0 }, // Next.js 14 keeps answers; Workers may have no cache: "no-store"
      });
      const retryAfter = response.headers.get("retry-after") ?? undefined;
      return { status: response.status, retryAfter, text: await response.text() };
    };
    return { answer: send(), end: (error) => stop.abort(error), sent: true };
  };
};
