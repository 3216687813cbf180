/** The definition of a tool: texts, input, output and implementation. */
import type * as z from 'zod'
import type { ToolResult } from '../answer.js'
import type { RouteResult } from '../source.js'
import { issueText } from '../terse.js'

/** What a tool can use. */
export interface ToolContext {
  /** Reads a route of the router; `null` for an invalid path. Never rejects. */
  fetchRoute(route: string | null): Promise<RouteResult>
  /** Whether payloads are shown. */
  readonly payloads: boolean
}

/** The result, or the reason of a refusal. */
export type Outcome = ToolResult | { readonly refused: string }

export interface Tool {
  readonly name: string
  readonly description: string
  readonly input: z.ZodObject
  readonly output: z.ZodObject
  /** `input`: checked by the schema. */
  run(input: Record<string, unknown>, toolContext: ToolContext): Promise<Outcome>
}

interface TypedTool<Input extends z.ZodObject> {
  name: string
  description: string
  input: Input
  output: z.ZodObject
  run(input: z.output<Input>, toolContext: ToolContext): Promise<Outcome>
}

/** A tool whose `run` is checked against its `input`. */
export const defineTool = <Input extends z.ZodObject>(tool: TypedTool<Input>): Tool => ({
  ...tool,
  async run(input, toolContext) {
    // The protocol has checked it as it was sent: a name may be another one since it is no longer as it was shown.
    const { data, error } = tool.input.safeParse(input)
    return error ? { refused: `invalid arguments: ${issueText(error.issues)}` } : tool.run(data, toolContext)
  },
})

/** `template` with each `{parameter}` from `values`; `null` where one is missing or would leave the route. */
export function pathOf(template: string, values: Readonly<Record<string, string>>): string | null {
  let isPath = true
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name] ?? ''
    isPath &&= !['', '.', '..'].includes(value) && value.isWellFormed()
    return isPath ? encodeURIComponent(value) : ''
  })
  return isPath ? path : null
}

/** `path` with `values` as its query. */
export const requestOf = (path: string | null, values: Readonly<Record<string, string>>): string | null =>
  path === null ? null : `${path}?${new URLSearchParams(values)}`
