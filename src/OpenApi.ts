/**
 * The OpenAPI 3.1 document, made from the contract that serves the requests. What the framework cannot know is
 * added here: headers of every answer, the codes of each error in words, and the framework's own decode error,
 * which never leaves the door, is taken out.
 */
import { OpenApi } from "@effect/platform"
import { Api } from "./Api.ts"

export const document = OpenApi.fromApi(Api)
