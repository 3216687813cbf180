/** The tools for records of any family: a page of a list, and one by its id. */
import * as z from 'zod'
import { MANY, ONE } from '../answer.js'
import { FAMILY_NAMES, familyOf, SINGLE_FAMILIES } from '../families.js'
import { count, cursorOf, isSampleOfNewest, missing, PAGE_INPUT, pageNotes, recordsOf } from './page.js'
import { defineTool, pathOf } from './tool.js'

const without = (record: Record<string, unknown>, member: string) =>
  Object.fromEntries(Object.entries(record).filter(([name]) => name !== member))

/** The record of a schema leaves this name out without a word, and a filter that is not asked for is no filter. */
const PROTO = '__proto__'

const FILTERS = z.preprocess(
  (given, check) => {
    if (given !== null && typeof given === 'object' && Object.hasOwn(given, PROTO))
      check.addIssue(`${PROTO} is no filter`)
    return given
  },
  z.record(z.string(), z.union([z.string(), z.boolean()])),
)

export const FIND_RECORDS = defineTool({
  name: 'find_records',
  description:
    'A page of records. filters are those of the family, e.g. user_id, client_id, status, state; a wrong one is answered with the right ones. messages need stream, connection_history connection_id, idle_workers user_id, task_workers task_id and user_id.',
  input: z.strictObject({
    family: z.enum(FAMILY_NAMES),
    filters: FILTERS.optional(),
    ...PAGE_INPUT,
  }),
  output: MANY,
  async look({ family, filters, limit, cursor }, { ask, payloads }) {
    const { list, payload } = familyOf(family)
    const given = Object.fromEntries(Object.entries(filters ?? {}).map(([name, value]) => [name, String(value)]))
    const path = pathOf(list, given)
    if (path === null) return { refused: `${family}: filters must name ${list.match(/\{\w+\}/g)?.join(', ')}` }
    const query = Object.entries(given).filter(([name]) => !list.includes(`{${name}}`))
    const paged = { limit: String(limit), ...(cursor === undefined ? {} : { cursor }) }
    // What is given twice is refused by the router, in its own words.
    const search = new URLSearchParams([...query, ...Object.entries(paged)])
    const { value, problem } = await ask(`${path}?${search}`)
    if (problem !== undefined) return { refused: problem }
    const records = recordsOf(value)
    if (records === null) return { refused: 'what answered there is no list' }
    const isHeldBack = payload !== undefined && !payloads
    const notes = pageNotes(value, cursor)
    return {
      headline: (many) => `${family}: ${count(many, 'record')}.`,
      complete: notes.length === 0,
      notes: [...notes, ...(isHeldBack ? [`The host shows no ${payload}s: that member is left out.`] : [])],
      next_cursor: cursorOf(value),
      keep: isSampleOfNewest(value) ? 'last' : 'first',
      untrusted: isHeldBack ? records.map((record) => without(record, payload)) : records,
    }
  },
})

export const GET_RECORD = defineTool({
  name: 'get_record',
  description: 'One record by its id.',
  input: z.strictObject({ family: z.enum(SINGLE_FAMILIES), id: z.string() }),
  output: ONE,
  async look({ family, id }, { ask }) {
    const { one = '' } = familyOf(family)
    const asked = await ask(pathOf(one.replace(/\{\w+\}/, '{id}'), { id }))
    if (asked.problem !== undefined) return { refused: missing(asked.problem, asked.status) }
    return { headline: `${family}: one record.`, complete: true, notes: [], untrusted: asked.value }
  },
})
