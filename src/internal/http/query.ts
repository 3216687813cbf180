/** Parses query strings strictly, so that a mistyped filter never silently widens the result. */
import * as z from 'zod'
import { type FieldError, ProblemError } from './problem.js'

// The name of an unknown parameter is shown only when it looks like one: it comes from outside and ends up in logs.
const PLAIN_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/

function decodeComponent(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

/** The schema that a field has under its `optional` and `default`. */
function innermost(schema: z.ZodType): z.ZodType {
  let inner = schema
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodDefault) inner = inner.unwrap() as z.ZodType
  return inner
}

// Not z.coerce: it takes '', '0x10', '1e2' and ' 5 ' for numbers, and every non-empty string for true.
function typed(schema: z.ZodType, text: string): unknown {
  if (schema instanceof z.ZodNumber) return /^[1-9][0-9]{0,9}$/.test(text) ? Number(text) : text
  if (schema instanceof z.ZodBoolean) return text === 'true' ? true : text === 'false' ? false : text
  return text
}

function reasonFor(schema: z.ZodType, issue: z.core.$ZodIssue): string {
  if (issue.code === 'custom') return issue.message
  if (schema instanceof z.ZodEnum) return `must be one of: ${schema.options.join(', ')}`
  if (schema instanceof z.ZodBoolean) return 'must be true or false'
  if (schema instanceof z.ZodNumber) return `must be a whole number from ${schema.minValue} to ${schema.maxValue}`
  if (issue.code === 'too_big') return `must be at most ${issue.maximum} characters`
  return 'is not valid'
}

/**
 * The query as `schema` reads it. Unknown, repeated, empty and undecodable parameters are refused, and `from` after `to`.
 *
 * @throws ProblemError `invalid_query` with one reason per parameter.
 */
export function parseQuery<T extends z.ZodObject>(schema: T, search: string): z.output<T> {
  const fields = schema.shape as Record<string, z.ZodType>
  const errors: FieldError[] = []
  const refuse = (name: string, reason: string) => errors.push({ in: 'query', name, reason })
  const values: Record<string, unknown> = {}
  for (const pair of search === '' ? [] : search.split('&')) {
    const at = pair.indexOf('=')
    const name = decodeComponent(at < 0 ? pair : pair.slice(0, at)) ?? ''
    if (!Object.hasOwn(fields, name)) {
      const known = Object.keys(fields)
      const takes = known.length ? `this route takes ${known.join(', ')}` : 'this route takes none'
      refuse(PLAIN_NAME.test(name) ? name : '(unreadable)', `unknown parameter; ${takes}`)
      continue
    }
    const value = at < 0 ? '' : decodeComponent(pair.slice(at + 1))
    if (value === undefined) refuse(name, 'is not valid percent-encoded UTF-8')
    else if (value === '') refuse(name, 'must not be empty')
    else if (Object.hasOwn(values, name)) refuse(name, 'must not be repeated')
    else values[name] = typed(innermost(fields[name] as z.ZodType), value)
  }
  const read = schema.safeParse(values)
  if (!read.success)
    for (const issue of read.error.issues) {
      const name = String(issue.path[0])
      if (errors.some((error) => error.name === name)) continue
      refuse(name, Object.hasOwn(values, name) ? reasonFor(innermost(fields[name] as z.ZodType), issue) : 'is required')
    }
  const { from, to } = Object(read.data) as { from: string; to: string }
  if (from > to) refuse('from', 'must not be after to')
  if (errors.length > 0 || !read.success) throw new ProblemError('invalid_query', { errors })
  return read.data
}
