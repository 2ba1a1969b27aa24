// The scale of the requests in the charts: how many the height of a chart stands for.

const fewest = 10;
const small = 20; // a burst that is no higher may set the scale

// scaleOf is the scale for the bins of all lanes. A few bursts that are far above
// the rest do not set it: they are drawn cut off, with their number.
export function scaleOf(lanes) {
  const heights = lanes.flat().map((bin) => Math.max(bin.allowed, bin.denied)).filter((n) => n > 0);
  heights.sort((a, b) => b - a);
  const top = heights[0] ?? 0;
  if (top <= small) return round(Math.max(top, fewest));
  const usual = heights[Math.min(heights.length - 1, 8)]; // two bursts, in each lane, over two bins
  const bursts = heights.length > 8 && top > 3 * usual;
  return round(Math.max(fewest, bursts ? 1.5 * usual : top));
}

function round(n) {
  const power = 10 ** Math.floor(Math.log10(n));
  return [1, 1.5, 2, 3, 5, 10].map((part) => part * power).find((top) => top >= n);
}
