/** What stored rows are made of where they differ from records: times are epoch ms, which scripts can reckon with. */
import * as z from 'zod'

// The last instant that a Date can hold; beyond, toISOString throws.
const LAST_INSTANT = 8.64e15

/** An instant or a duration in ms. */
export const Millis = z.number().min(0).max(LAST_INSTANT)
