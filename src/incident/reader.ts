/** Reads the inspectors of this process as a router would answer them, without requests and texts. */
import type * as z from 'zod'
import { Deadline } from '../internal/async/deadline.js'
import type { Steps } from '../internal/async/turns.js'
import { type BadRecord, toBadRecord } from '../internal/contract/bad-record.js'
import type { Deployment, Inspectors, Present } from '../internal/contract/families.js'
import { resolveOptions } from '../internal/diagnostics/options.js'
import { createQuestions, requestedRoutes } from '../internal/diagnostics/question.js'
import type { Service } from '../internal/diagnostics/route.js'
import { noopAuth } from '../internal/http/auth.js'
import {
  createEncoder,
  type Encoded,
  RefusedRecords,
  recordEncoder,
  UnacceptableAnswer,
} from '../internal/http/encode.js'
import { ProblemError, toProblem } from '../internal/http/problem.js'
import { readQuery } from '../internal/http/read.js'
import { isObject } from '../internal/relay-client/wire.js'
import { PART_BY_ROUTE, type Part, type Row, rowIdOf } from './parts.js'
import { type FetchReply, refusedOf, UNCHANGED } from './source.js'

/** An answer as data, which is never sent as a text. */
interface Decoded extends Encoded {
  readonly decoded: Row
}

const decodedAs = (decoded: Row): Decoded => ({ members: [], text: '', decoded })

/** Whether an absent field reads as this value. */
const isDefault = (value: unknown) => value === null || value === 0 || (Array.isArray(value) && value.length === 0)

/** Whether reading `given` through its schema makes `row` again, which it made of an earlier one. */
function isReadAs(given: unknown, row: unknown): boolean {
  if (given === row) return true
  if (given === undefined) return isDefault(row)
  if (given === null || row === null || typeof given !== 'object' || typeof row !== 'object') return false
  if (Array.isArray(given) !== Array.isArray(row)) return false
  const [fields, known] = [given as Row, row as Row]
  for (const name of Object.keys(known)) if (!isReadAs(fields[name], known[name])) return false
  // Another field may be one that the schema knows.
  return Object.keys(fields).every((name) => name in known || fields[name] === undefined)
}

/** Returns a function that reads rows of one list: one that has not changed is the object that was returned before. */
function createRowReader(part: Part, element: z.ZodType) {
  const encode = recordEncoder(element)
  const frozen = new WeakMap<object, Row>()
  let before = new Map<string, Row>()
  let rows = new Map<string, Row>()

  function readChanged(given: object): Row {
    const row: Row = JSON.parse(encode(given).text)
    if (encode.keeps(given)) frozen.set(given, row)
    return row
  }

  return {
    /** Begins a walk: rows that it does not find are forgotten with the one after. */
    begin() {
      before = rows
      rows = new Map()
    },
    /** @throws UnacceptableAnswer for a row that its schema refuses. */
    read(given: unknown): Row {
      if (!isObject(given)) throw new UnacceptableAnswer('items: must be objects')
      const kept = frozen.get(given)
      if (kept) return kept
      const id = rowIdOf(part, given)
      const known = rows.get(id) ?? before.get(id)
      const row = known && isReadAs(given, known) ? known : readChanged(given)
      if (!frozen.has(given)) rows.set(id, row)
      return row
    },
  }
}

/** How many rows are read between two steps. */
const STEP = 16

/** The `encode` of a list whose answers are data. */
function listDecoder(part: Part, element: z.ZodType) {
  const reader = createRowReader(part, element)
  function* decode(value: unknown): Steps<Decoded> {
    const list = value as { readonly items: readonly unknown[] }
    const items: Row[] = []
    const refused = new Map<number, BadRecord>()
    for (let i = 0; i < list.items.length; i++) {
      if (i % STEP === STEP - 1) yield
      try {
        items.push(reader.read(list.items[i]))
      } catch (error) {
        const cause = error instanceof UnacceptableAnswer ? error.cause : error
        refused.set(i, toBadRecord(element, list.items[i], i, cause))
      }
    }
    if (refused.size > 0) throw new RefusedRecords('items', refused)
    return decodedAs({ ...list, items })
  }
  return { begin: reader.begin, decode }
}

/** The `encode` of an answer without a list. */
function answerDecoder(response: z.ZodType) {
  const encode = createEncoder(response)
  return function* (value: unknown): Steps<Decoded> {
    return decodedAs(JSON.parse((yield* encode(value)).text))
  }
}

/** Only routes about the router itself read it. */
const NO_SERVICE = undefined as unknown as Service

/**
 * Returns a function that reads a route of `inspectors`, until `signal` aborts. The tag of an answer is the version of its
 * inspectors. Rows that have not changed since the last walk are the same objects as then, and are not checked again.
 */
export function readerOf(
  { inspectors, deployment }: { inspectors: Inspectors; deployment: Deployment },
  signal: AbortSignal,
): FetchReply {
  const resolved = resolveOptions({ inspectors, deployment, auth: noopAuth(), onError: null })
  const questionOf = createQuestions(resolved)
  const accessScope = { inspectors: resolved.inspectors as Present, service: NO_SERVICE }
  const routes = new Map(
    requestedRoutes(resolved.limits).flatMap((prepared) => {
      const part = PART_BY_ROUTE.get(prepared.path)
      if (!part) return []
      const { response } = prepared.route
      if (part.kind === 'answer') return [[prepared.path, { ...prepared, encode: answerDecoder(response), begin() {} }]]
      const { begin, decode } = listDecoder(part, part.row)
      return [[prepared.path, { ...prepared, encode: decode, begin }]]
    }),
  )
  return async (path, tag = null) => {
    signal.throwIfAborted()
    const [pathname = '', search = ''] = path.split('?')
    const deadline = new Deadline(resolved.deadlineMs, { signal })
    let isPartial = false
    try {
      const prepared = routes.get(pathname)
      if (!prepared) throw new ProblemError('route_not_found')
      const given = readQuery(prepared, search)
      const asked = { params: {}, given, accessScope, deadline }
      const question = questionOf(prepared, asked, new Set(), () => {
        isPartial = true
      })
      const version = await question.version()
      if (version !== null && version === tag) return { refused: UNCHANGED }
      if (given.cursor === undefined) prepared.begin()
      const { encoded, complete } = await question.answer()
      const value = (encoded as Decoded).decoded
      return { value, etag: isPartial || complete === false || value.omitted ? null : version }
    } catch (error) {
      signal.throwIfAborted()
      const problem = error instanceof ProblemError ? toProblem(error.code, error.extra) : toProblem('internal')
      return { refused: refusedOf(problem.status, problem) }
    } finally {
      deadline.clear()
    }
  }
}
