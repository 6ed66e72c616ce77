/**
 * A further media type of an operation's response, for the endpoint's annotation `OpenApi.Transform`: the framework's
 * contracts have one. `example` is the beginning of such a body.
 */
export const alsoAs =
  (type: string, description: string, example: string) =>
  (operation: Readonly<Record<string, unknown>>): Record<string, unknown> => {
    // The framework's operation has responses by status, each with its content.
    const { 200: success, ...others } = operation["responses"] as Readonly<Record<string, { readonly content?: object }>>
    const content = { ...success?.content, [type]: { schema: { type: "string", description, examples: [example] } } }
    return { ...operation, responses: { 200: { ...success, content }, ...others } }
  }
