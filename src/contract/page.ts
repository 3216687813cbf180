/** How a list is asked for and answered: the page, its token, and what accompanies every call of an inspector. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'

/** At once or by promise. */
export type Awaitable<T> = T | Promise<T>

/** What accompanies every call of an inspector. */
export interface Ask {
  /** Aborted when the client goes away or the deadline passes. */
  signal: AbortSignal
  /** Where an inspector may tell of what it passed over to be able to answer; a router hands it to `onError`. */
  report?(error: unknown): void
}

/** One page of a list. */
export interface PageQuery {
  /** Most items to return, at least 1. */
  limit: number
  /** The inspector's own token from the page before, as it handed it out; `null` asks for the first page. */
  cursor: string | null
}

/** Items and where to go on. An empty page with `has_more: true` is normal: keep walking. */
export interface Page<T> {
  items: T[]
  /** The inspector's own token, at most 360 bytes; present whenever `has_more` is true. */
  next_cursor: string | null
  has_more: boolean
}

/** What an index says of itself. `truncated`: a part of the source could not be read, so that its answer may be too little. */
export interface Indexed {
  truncated?: boolean
}

/** One page of ids in the order of their UTF-8 bytes, each greater than `after`. */
export interface IdPageQuery {
  after: string | null
  limit: number
}

/** The schema of a page of `item`. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), next_cursor: z.string().nullable(), has_more: z.boolean() })
}

/** One bounded sample of a stream's messages, without a cursor. `truncated`: the stream has held more than these. */
export interface Sample<T> {
  items: T[]
  truncated: boolean
}

const SEQUENCE = /^(0|[1-9][0-9]{0,15})$/

/**
 * The sequence number that a token of a sequence index stands for; 0 for the first page.
 *
 * @throws Refusal `invalid_cursor` for anything that is not a canonical decimal within 2^53.
 */
export function parseSequence(cursor: string | null): number {
  if (cursor === null) return 0
  if (!SEQUENCE.test(cursor) || !Number.isSafeInteger(Number(cursor))) throw new Refusal('invalid_cursor')
  return Number(cursor)
}
