/** The tool that says what contradicts what, what that means, and what it does not. */
import * as z from 'zod'
import { MANY, plain } from '../answer.js'
import { shownWithin } from '../untrusted.js'
import { blindNotes, count, cursorOf, PAGE_INPUT, pageNotes, recordsOf } from './page.js'
import { defineTool, requestOf } from './tool.js'

/** Of what a router says of a kind, in characters, and of kinds: its own texts are shorter, and as many. */
const WORDS = 400
const KINDS = 12

/** What each kind among `records` means and does not mean, once. */
function explain(records: readonly Record<string, unknown>[]): string[] {
  const said = new Map<string, string>()
  for (const { kind, means, does_not_mean } of records)
    for (const name of plain([kind])) said.set(name, `${name}: ${means ?? ''} ${does_not_mean ?? ''}`)
  return [...said.values()].slice(0, KINDS).map((words) => shownWithin(words, WORDS))
}

export const EXPLAIN_FINDINGS = defineTool({
  name: 'explain_findings',
  description:
    'What sources contradict or is overdue by its own clock, with evidence, meaning, and what it does not mean.',
  input: z.strictObject({ kind: z.string().optional(), ...PAGE_INPUT }),
  output: MANY.extend({ explanations: z.array(z.string()) }),
  async look({ kind, limit, cursor }, { ask }) {
    const query = {
      limit: String(limit),
      ...(kind === undefined ? {} : { kind }),
      ...(cursor === undefined ? {} : { cursor }),
    }
    const { value, problem } = await ask(requestOf('/findings', query))
    if (problem !== undefined) return { refused: problem }
    const records = recordsOf(value)
    if (records === null) return { refused: 'what answered there is no list' }
    const notes = [...pageNotes(value, cursor), ...blindNotes(value)]
    return {
      headline: (many) => (many > 0 ? `${count(many, 'finding')}.` : 'No finding here, which is not: all is well.'),
      complete: notes.length === 0,
      notes,
      explanations: explain(records),
      next_cursor: cursorOf(value),
      untrusted: records.map(({ means, does_not_mean, ...record }) => record),
    }
  },
})
