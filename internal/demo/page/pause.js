// Waiting that can be stopped.

// Stopped is thrown by what was stopped on purpose. It is no failure.
export class Stopped extends Error {}

// pause waits. It throws a Stopped as soon as the signal, if there is one, is aborted.
export function pause(ms, signal) {
  return new Promise((done, fail) => {
    if (signal?.aborted) {
      fail(new Stopped("stopped"));
      return;
    }
    const stop = () => {
      clearTimeout(timer);
      fail(new Stopped("stopped"));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      done();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
