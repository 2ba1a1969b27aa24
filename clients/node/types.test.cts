// Compiled by tsc --strict, as what a CommonJS program writes.

import headgate = require("headgate");

export const limits: headgate.Client = new headgate.Client(new URL("http://127.0.0.1"));
