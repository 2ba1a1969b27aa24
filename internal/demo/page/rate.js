// The rate of the stream, in a field and on a slider. Each step of the slider is
// another rate: by ones to a hundred, and then by so much of what it is.

const rates = [];
const stepAfter = (rate) => 10 ** Math.max(0, Math.floor(Math.log10(rate)) - 1);
for (let rate = 1; rate <= 10_000; rate += stepAfter(rate)) rates.push(rate);

export const steps = rates.length - 1;

export const rateAt = (step) => rates[step];

// stepOf is the step nearest below a rate.
export const stepOf = (rate) => rates.findLastIndex((r) => r <= rate);
