/** One method of a route as data beside what answers it, so that a document can tell of it. */
import type * as z from 'zod'
import type { ProblemCode } from './problem.js'

/** One answer that is no problem. Without a schema it has no body. */
interface Answer {
  description: string
  schema?: z.ZodType
  example?: unknown
  /** It is a stream of events: what `data` of each carries, by the event’s name. */
  events?: Readonly<Record<string, z.ZodType>>
}

/** What a method takes, answers and refuses, and what does it. */
export interface Operation<Handle> {
  /** What a generated client calls it: a verb and what it answers, for good. */
  operationId: string
  summary: string
  /** Headers that mean something here, each with what. */
  headers?: Readonly<Record<string, string>>
  /** The JSON that it takes. */
  body?: { schema: z.ZodType; example: unknown }
  /** By status. */
  answers: Readonly<Record<number, Answer>>
  /** What it refuses with, beside what every route of its router does. */
  problems: readonly ProblemCode[]
  handle: Handle
}

/** A body as `schema` reads it. */
export const bodyOf = <S extends z.ZodType>(schema: S, example: NoInfer<z.input<S>>) => ({ schema, example })

/** An answer as `schema` writes it. */
export const answerOf = <S extends z.ZodType>(
  description: string,
  schema: S,
  example: NoInfer<z.output<S>>,
): Answer => ({
  description,
  schema,
  example,
})

/** An answer that goes on until somebody leaves. `example`: its first frames. */
export const streamOf = (
  description: string,
  events: Readonly<Record<string, z.ZodType>>,
  example: string,
): Answer => ({
  description,
  events,
  example,
})

/** What reading a JSON body can be refused with. */
export const BODY_PROBLEMS = [
  'unsupported_media_type',
  'body_too_large',
  'invalid_json',
  'invalid_body',
] as const satisfies readonly ProblemCode[]
