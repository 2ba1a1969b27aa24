"use strict";

const MAX_DELAY = 2 ** 31 - 1; // milliseconds; a longer timer would end at once

/** Resolves after a time, or rejects when signal is aborted. */
function sleep(seconds, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const end = performance.now() + 1000 * seconds;
    const next = () => {
      const left = end - performance.now();
      if (left > 0) {
        timer = setTimeout(next, Math.min(Math.ceil(left), MAX_DELAY));
        return;
      }
      signal?.removeEventListener("abort", stop);
      resolve();
    };
    let timer;
    if (signal?.aborted) stop();
    else {
      signal?.addEventListener("abort", stop, { once: true });
      next();
    }
  });
}

module.exports = { MAX_DELAY, sleep };
