/** What a page of a router says of itself, and what it does not know, for every tool that shows one. */
import * as z from 'zod'
import { listed } from '../answer.js'

const LIMIT = 20
const LIMIT_MAX = 100

export const PAGE_INPUT = {
  limit: z.int().min(1).max(LIMIT_MAX).default(LIMIT),
  cursor: z.string().optional().describe('next_cursor of the page before'),
}

type Page = Record<string, unknown>

/** So many of what is called that. */
export const count = (many: number, one: string): string => `${many} ${one}${many === 1 ? '' : 's'}`

/** The records of a page; `null` for what is none. */
export function recordsOf({ items }: Page): Record<string, unknown>[] | null {
  const isRecord = (item: unknown) => item !== null && typeof item === 'object' && !Array.isArray(item)
  return Array.isArray(items) && items.every(isRecord) ? items : null
}

/** The cursor of a page, where it is one that can be sent back. */
export const cursorOf = ({ has_more, next_cursor }: Page): string | null =>
  has_more === true && typeof next_cursor === 'string' && /^[\w.~-]{1,1024}$/.test(next_cursor) ? next_cursor : null

/** What an answer over several sources does not know. */
export function sampleNotes({ completeness }: Page): string[] {
  const { complete, truncated_sources } = (completeness ?? {}) as Record<string, unknown>
  if (complete !== false) return []
  const sources = listed(truncated_sources) || 'some source'
  return [`A sample: cut short in ${sources}. What is not here may still be there; counts are at least so many.`]
}

/** What of its range a page cannot show. */
export const omittedNotes = ({ omitted }: Page): string[] =>
  typeof omitted === 'number' ? [`${count(omitted, 'record')} of this range cannot be shown.`] : []

/** Which kinds of findings nobody here could have found. */
export function blindNotes({ not_looked_for }: Page): string[] {
  const kinds = listed(not_looked_for)
  return kinds === '' ? [] : [`No source here can show these kinds: ${kinds}.`]
}

/** Whether it is no page of a list but the end of one: the newest records, the oldest of them first. */
export const isSampleOfNewest = ({ has_more }: Page): boolean => typeof has_more !== 'boolean'

/** Why a page is not all of its list. */
export function pageNotes(page: Page, cursor: string | undefined): string[] {
  const { has_more } = page
  return [
    ...(cursor === undefined ? [] : ['The pages before this one are not here.']),
    ...(has_more === true ? ['More records follow this page.'] : []),
    ...(isSampleOfNewest(page) ? ['A sample: the newest ones. There may be older ones.'] : []),
    ...omittedNotes(page),
    ...sampleNotes(page),
  ]
}

/** What a missing record does not mean. */
export const missing = (problem: string, status: number | null): string =>
  // A route that is not there is no record that is not there.
  status === 404 && problem.startsWith('404 not_found:')
    ? `${problem}. Nobody knows it now; it may have been there and be forgotten.`
    : problem
