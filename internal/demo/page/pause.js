// Waiting that can be stopped.

// Stopped is thrown by what was stopped on purpose. It is no failure.
export class Stopped extends Error {}

// pause waits. It throws a Stopped as soon as the signal, if there is one, is aborted.
export const pause = (ms, signal) => new Promise((done, fail) => {
  const timer = setTimeout(done, ms);
  const stop = () => {
    clearTimeout(timer);
    fail(new Stopped("stopped"));
  };
  if (signal?.aborted) stop();
  else signal?.addEventListener("abort", stop, { once: true });
});
