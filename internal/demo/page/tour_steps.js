// What the tour shows. The lane that a step is about is on the left.

export const steps = [
  {
    title: "Token bucket",
    text: "A bucket holds 10 tokens, and 2 a second flow in. Each request takes one. " +
      "A client that was quiet can send a burst; a busy client gets the rate.",
    left: "2/s burst 10", right: "10/5s fixed-window",
    script: [
      { wait: 0.8 },
      { burst: 15, say: "15 at once: 10 find a token, 5 find none. Both limits agree on that." },
      { wait: 1.2, say: "The blue line rises at once on the left: tokens flow in all the time." },
      {
        rate: 5, seconds: 8,
        say: "5 a second is too fast. The left lane lets 2 a second through, evenly; " +
          "the right one waits for its next window, and then opens at once.",
      },
      { wait: 0.1, say: "Choose it first: one burst, one rate, and the fewest surprises." },
    ],
  },
  {
    title: "Stepped bucket",
    text: "The same bucket, but its tokens arrive together, 8 every 4 seconds. " +
      "It is the bucket of the Redis guide.",
    left: "8/4s stepped", right: "8/4s",
    script: [
      { wait: 0.8 },
      { burst: 12, say: "The burst empties both buckets." },
      {
        rate: 6, seconds: 9,
        say: "Left: stairs, and a group of grants each 4 seconds. " +
          "Right: a line, and single grants.",
      },
      {
        wait: 0.1,
        say: "Both allow the same in the long run. The stairs make clients come in waves.",
      },
    ],
  },
  {
    title: "Fixed window",
    text: "It counts to 10 and starts again at each edge, the dashed line. " +
      "That is simple and cheap, but it does not look back over the edge.",
    left: "10/5s fixed-window", right: "10/5s",
    script: [
      { wait: 0.5, say: "Wait for the edge: one burst comes just before it, one just after it." },
      { edge: true },
      {
        wait: 2,
        say: "The fixed window allowed 20 in less than a second, twice its limit. " +
          "The token bucket on the right had almost nothing left for the second burst.",
      },
      { wait: 0.1, say: "Use it for quotas by the clock, such as 1,000 a day." },
    ],
  },
  {
    title: "Sliding window",
    text: "It adds a share of the window before to the present count: all of it at the edge, " +
      "then less and less. It costs two numbers for each key.",
    left: "10/5s sliding-window", right: "10/5s fixed-window",
    script: [
      { wait: 0.5, say: "The same two bursts across the edge." },
      { edge: true },
      {
        wait: 1.5,
        say: "The second burst is nearly all denied on the left: the first one still counts.",
      },
      {
        rate: 4, seconds: 6,
        say: "Then the share of the old window shrinks, and requests pass one by one.",
      },
      {
        wait: 0.1,
        say: "The share assumes that the old requests were spread evenly. These were not, so " +
          "5 seconds held more than 10. Use it where memory is short and about right is enough.",
      },
    ],
  },
  {
    title: "Sliding log",
    text: "It remembers the time of each grant. No interval of 5 seconds holds more than 10, " +
      "wherever it begins. It costs memory for each grant.",
    left: "10/5s sliding-log", right: "10/5s sliding-window",
    script: [
      { wait: 0.8 },
      { burst: 10, say: "10 at once use it up." },
      {
        rate: 4, seconds: 6,
        say: "After exactly 5 seconds those 10 expire together, and it opens again.",
      },
      {
        wait: 0.1,
        say: "Use it where the limit is strict and small, such as 5 logins in 15 minutes.",
      },
    ],
  },
];
