/** The query parameters that lists share, within the router's limits. */
import * as z from 'zod'
import { CURSOR_BYTES, type RouterLimits } from '../contract/limits.js'

const limitOf = (fallback: number, max: number) => z.int().min(1).max(max).default(fallback)

/** `limit` and `cursor` of a paged list. */
export function pageQuery({ pageDefault, pageMax }: RouterLimits) {
  return z.object({
    limit: limitOf(pageDefault, pageMax),
    // No maxLength here: one that is too long is an invalid cursor, not an invalid query.
    cursor: z.string().meta({ maxLength: CURSOR_BYTES }).optional(),
  })
}

/** `limit` of a list without a cursor. */
export function limitQuery({ pageDefault, pageMax }: RouterLimits) {
  return z.object({ limit: limitOf(pageDefault, pageMax) })
}

/** `limit` of a raw history sample. */
export function sampleQuery({ historyDefault, historyMax }: RouterLimits) {
  return z.object({ limit: limitOf(historyDefault, historyMax) })
}

/** A route without query parameters. */
export const NoQuery = z.object({})
