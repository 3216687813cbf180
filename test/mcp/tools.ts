/** What every transport of the tools has in common. */
import { describe, expect, it } from 'vitest'
import { createSubject, get } from '../diagnostics/subject.js'
import { type Answer, call, fenced } from './subject.js'

type Json = Record<string, unknown>

export const router = createSubject()
const answerOf = async (route: string) => (await get<Json>(router, route)).body
const itemsOf = async (route: string) => (await answerOf(route)).items as Json[]

/** Each tool, its arguments, and the answer of the router to the same request. */
const ASKED: [tool: string, given: Json, expected: () => Promise<unknown>][] = [
  ['search', { q: 'alice' }, async () => (await answerOf('/search?q=alice')).hits],
  ['find_records', { family: 'connections' }, () => itemsOf('/connections')],
  [
    'find_records',
    { family: 'commands', filters: { overdue: false } },
    () => itemsOf('/delivery/commands?overdue=false'),
  ],
  [
    'find_records',
    { family: 'task_workers', filters: { task_id: 'task-1', user_id: 'alice' } },
    () => itemsOf('/workers/tasks/task-1?user_id=alice'),
  ],
  ['get_record', { family: 'contexts', id: 'ctx-4' }, () => answerOf('/contexts/ctx-4')],
  ['user_summary', { user_id: 'alice' }, () => answerOf('/users/alice/summary')],
  [
    'explain_command',
    { user_id: 'alice', client_id: 'desk', command_id: 'cmd-2' },
    () => answerOf('/delivery/why?user_id=alice&client_id=desk&command_id=cmd-2'),
  ],
  [
    'command_evidence',
    { user_id: 'alice', client_id: 'desk', command_id: 'cmd-1' },
    () => answerOf('/delivery/status?user_id=alice&client_id=desk&command_id=cmd-1'),
  ],
]

const NAMES = [
  'relay_overview',
  'search',
  'find_records',
  'get_record',
  'user_summary',
  'command_evidence',
  'explain_command',
  'explain_findings',
]

/** What text and structured content both have to say. */
function expectAlike({ text, content }: Answer) {
  const { untrusted, complete, notes = [] } = content ?? {}
  expect(fenced(text)).toEqual([untrusted].flat())
  expect(text.includes('NOT COMPLETE')).toBe(!complete)
  for (const note of notes) expect(text).toContain(note)
}

/** The same tools and words over each way to reach them. */
export const describeTools = (ways: [name: string, connect: () => Promise<Parameters<typeof call>[0]>][]) =>
  describe.each(ways)('the tools over %s', (_, connect) => {
    it('are eight, in a fixed order, read-only, and answer as the router does', async () => {
      const client = await connect()
      const { tools } = await client.listTools()
      expect(tools.map(({ name }) => name)).toEqual(NAMES)
      for (const { annotations, outputSchema } of tools) {
        expect(annotations).toEqual({ readOnlyHint: true, openWorldHint: false })
        expect(Object.keys(outputSchema?.properties ?? {})).toEqual(
          expect.arrayContaining(['complete', 'notes', 'as_of', 'untrusted']),
        )
      }
      for (const [tool, given, expected] of ASKED) {
        const answer = await call(client, tool, given)
        expect(answer.content?.untrusted, tool).toEqual(await expected())
        expectAlike(answer)
      }
      const overview = await call(client, 'relay_overview')
      expectAlike(overview)
      expect(overview.content).toMatchObject({
        complete: true,
        untrusted: { connections: { total: 6 }, calls: { pending: 4 }, delivery: { tracked_commands: 4 } },
      })
      const findings = await call(client, 'explain_findings', { kind: 'counts_disagree' })
      expectAlike(findings)
      expect(findings.content).toMatchObject({ untrusted: [{ kind: 'counts_disagree', subject: {} }] })
      expect(findings.text).toContain('counts_disagree: Two sources count the same entries')
      expect(findings.text).toContain('It does not say which number is right.')
    })

    it('refuse in the words of the router', async () => {
      const client = await connect()
      const refused = async (tool: string, given: Json) => {
        const { isError, text, content } = await call(client, tool, given)
        expect([isError, content]).toEqual([true, undefined])
        return text
      }
      expect(await refused('find_records', { family: 'commands', filters: { state: 'lost' } })).toMatch(
        /^422 invalid_query: .*state must be one of: open, waiting, attempted/,
      )
      expect(await refused('get_record', { family: 'sites', id: 'missing' })).toMatch(
        /^404 not_found: .*may have existed/,
      )
      expect(await refused('find_records', { family: 'nothing' })).toContain('expected one of "actions"')
      expect(await refused('find_records', { family: 'connection_history' })).toContain('{connection_id}')
      expect(await refused('find_records', { family: 'sites', filters: { limit: '5' } })).toMatch(
        /must not be repeated/,
      )
      expect(await refused('get_record', { family: 'sites', id: '..' })).toContain('segment of a path')
    })
  })
