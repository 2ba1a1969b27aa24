// Writes a summary for users of screen readers, at most every few seconds.

const atMost = 4000;

// summaryIn returns a function that writes text() into the element, at most once in atMost
// milliseconds. If it is called several times before the next write, only the last text is written.
export function summaryIn(element) {
  let timer, text;
  let last = -atMost;
  return (newest) => {
    text = newest;
    timer ??= setTimeout(() => {
      timer = undefined;
      last = performance.now();
      element.textContent = text();
    }, Math.max(300, last + atMost - performance.now()));
  };
}
