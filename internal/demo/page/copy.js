export { copyFrom, copyText } from "./dom.js";
