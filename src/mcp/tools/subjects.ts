/** The tools about one user and about one command: all that is known of either. */
import * as z from 'zod'
import { ONE } from '../answer.js'
import { missing, sampleNotes } from './page.js'
import { defineTool, pathOf, requestOf } from './tool.js'

export const USER_SUMMARY = defineTool({
  name: 'user_summary',
  description: 'What all sources together know of one user. null is unknown, not 0.',
  input: z.strictObject({ user_id: z.string() }),
  output: ONE,
  async look(input, { ask }) {
    const asked = await ask(pathOf('/users/{user_id}/summary', input))
    if (asked.problem !== undefined) return { refused: missing(asked.problem, asked.status) }
    const notes = sampleNotes(asked.value)
    return { headline: 'One user.', complete: notes.length === 0, notes, untrusted: asked.value }
  },
})

export const COMMAND_EVIDENCE = defineTool({
  name: 'command_evidence',
  description:
    'What is recorded of one command: admission, attempts, acknowledgement, end. Never proof of its effect. Of one whose user_id or client_id is null, its scope_id stands for it.',
  input: z.strictObject({ user_id: z.string(), client_id: z.string(), command_id: z.string() }),
  output: ONE,
  async look(input, { ask }) {
    const asked = await ask(requestOf('/delivery/status', input))
    if (asked.problem !== undefined) return { refused: missing(asked.problem, asked.status) }
    const notes = ['No member of it means that an effect happened, or did not.']
    return { headline: 'The evidence about one command.', complete: true, notes, untrusted: asked.value }
  },
})
