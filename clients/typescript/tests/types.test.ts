/** What the types allow; `npm run types` checks it. */

import { expectTypeOf, it } from "vitest";
import type { AnswerRequest } from "../src/index.ts";

it("has a method of its own for answers word by word", () => {
  expectTypeOf<AnswerRequest>().toHaveProperty("explain");
  expectTypeOf<AnswerRequest>().not.toHaveProperty("stream");
});
