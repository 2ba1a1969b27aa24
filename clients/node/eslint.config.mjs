import js from "@eslint/js";
import globals from "globals";

const options = { ...js.configs.recommended, languageOptions: { globals: globals.node } };

export default [
  { files: ["**/*.mjs"], ...options },
  { files: ["**/*.cjs"], ...options, languageOptions: { ...options.languageOptions, sourceType: "commonjs" } },
];
