// What the tour shows. The lane that a step is about is on the left.

export const steps = [
  {
    title: "Token bucket",
    text: "A bucket holds 10 tokens, and 2 tokens a second are added. Each request takes one. " +
      "A client that has paused can send a burst. A busy client gets 2 a second.",
    left: "2/s burst 10", right: "10/5s fixed-window",
    script: [
      { wait: 0.8 },
      { burst: 15, say: "15 at once: 10 get a token, 5 do not. Both limits decide the same." },
      { wait: 1.2, say: "The blue line on the left rises at once: tokens arrive all the time." },
      {
        rate: 5, seconds: 8,
        say: "5 a second is too fast. The left limit allows 2 a second, evenly. " +
          "The right limit allows none until its next window, and then 10.",
      },
      { wait: 0.1, say: "Use it as the default: its two numbers are a burst and a rate." },
    ],
  },
  {
    title: "Stepped bucket",
    text: "The same bucket, but 8 tokens arrive together every 4 seconds. " +
      "The token bucket guide of the Redis documentation uses it.",
    left: "8/4s stepped", right: "8/4s",
    script: [
      { wait: 0.8 },
      { burst: 12, say: "The burst empties both buckets." },
      {
        rate: 6, seconds: 9,
        say: "Left: the line rises in steps, and a group of requests is allowed every 4 seconds. " +
          "Right: the line rises evenly, and requests are allowed one by one.",
      },
      {
        wait: 0.1,
        say: "Both allow the same in the long run. With steps, requests arrive in groups.",
      },
    ],
  },
  {
    title: "Fixed window",
    text: "It allows 10 requests, and counts from 0 again at each edge, the dashed line. " +
      "It is simple and cheap, but it ignores what happened before the edge.",
    left: "10/5s fixed-window", right: "10/5s",
    script: [
      { wait: 0.5, say: "The page sends one burst just before the edge, and one just after it." },
      { edge: true },
      {
        wait: 2,
        say: "The fixed window allowed 20 in less than a second, twice its limit. " +
          "The token bucket on the right had few tokens left for the second burst.",
      },
      { wait: 0.1, say: "Use it for quotas per calendar time, such as 1,000 a day." },
    ],
  },
  {
    title: "Sliding window",
    text: "It adds a part of the previous window to the current count: all of it at the edge, " +
      "then less and less. It stores two numbers for each key.",
    left: "10/5s sliding-window", right: "10/5s fixed-window",
    script: [
      { wait: 0.5, say: "The same two bursts across the edge." },
      { edge: true },
      {
        wait: 1.5,
        say: "On the left, nearly all of the second burst is denied: the first one still counts.",
      },
      {
        rate: 4, seconds: 6,
        say: "Then the previous window counts less and less, and requests are allowed one by one.",
      },
      {
        wait: 0.1,
        say: "It assumes that the previous requests were spread evenly. These were not, so more " +
          "than 10 were allowed in 5 seconds. Use it if memory is limited and about 10 is enough.",
      },
    ],
  },
  {
    title: "Sliding log",
    text: "It stores the time of each allowed request. It never allows more than 10 in any " +
      "5 seconds. It needs memory for each allowed request.",
    left: "10/5s sliding-log", right: "10/5s sliding-window",
    script: [
      { wait: 0.8 },
      { burst: 10, say: "10 at once use up the limit." },
      {
        rate: 4, seconds: 6,
        say: "After exactly 5 seconds those 10 expire together, and requests are allowed again.",
      },
      {
        wait: 0.1,
        say: "Use it for small, strict limits, such as 5 logins in 15 minutes.",
      },
    ],
  },
];
