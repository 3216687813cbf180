/** What an answer is compared by: a weak entity tag (RFC 9110, 8.8.3), and whether a client has named it. */
import { digest64 } from '../contract/digest.js'

/** The tag of an answer of which `text` says all that is compared. */
export const weakTag = (text: string): string => `W/"${digest64(text)}"`

/** Whether `header`, an `If-None-Match`, names `tag`: such a client has the answer. */
export function isNamed(header: string | null, tag: string): boolean {
  if (header === null) return false
  return header.trim() === '*' || header.split(',').some((one) => opaque(one) === opaque(tag))
}

/** A tag without what says that it is weak: that is not compared. */
const opaque = (tag: string) => tag.trim().replace(/^W\//, '')

/** An answer as it is compared: a page or a count, without what changes by the clock alone. */
export interface Comparable {
  items?: object[]
  [name: string]: unknown
}

/**
 * `body` without the instant of the observation, what it cost, and what `of` leaves out of each record.
 *
 * @param of A record without what changes by the clock alone.
 */
export function comparedOf({ observed_at, completeness, items, ...rest }: Comparable, of?: (item: object) => object) {
  const { examined, ...known } = (completeness ?? {}) as { examined?: unknown }
  return { ...rest, completeness: known, items: of && items ? items.map(of) : items }
}
