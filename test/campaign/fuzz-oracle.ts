/** Says what is wrong with an answer, whatever was asked: the same words for each surface. */
import type * as z from 'zod'
import { SiteMessageAnswer } from '../../src/internal/contract/ingest.js'
import { Invocation } from '../../src/internal/contract/invocations.js'
import { Site } from '../../src/internal/contract/sites.js'
import { ROUTES } from '../../src/internal/diagnostics/routes.js'
import { Problem } from '../../src/internal/http/problem.js'
import type { Asked, Attack, Surface } from './fuzz-requests.js'
import { ECHO } from './fuzz-values.js'
import type { Answered, Exchange } from './fuzz-wire.js'

/** Stands in keys, tokens, payloads of commands and thrown errors: in no answer. */
export const PLANTED = 'planted-s3cr3t'

const SCHEMAS: Record<Surface, readonly z.ZodType[]> = {
  diagnostics: ROUTES.map(({ response }) => response),
  relay: [SiteMessageAnswer, Site, Invocation],
  control: [SiteMessageAnswer.omit({ duplicate: true }), Site],
}

/** What the fuzzer's world brings about by itself: an application that is slow, one that is not there, a full share. */
const INJECTED = new Set(['action_timeout', 'connector_unavailable', 'relay_refused'])

/** Statuses of Node's own parser for input that is not HTTP. */
const UNPARSED = new Set([400, 408, 413, 417, 431])

/** The schemas that a body of this request may have: of the route that its path names, where there is one. */
function schemasFor(surface: Surface, asked: Asked | undefined, prefix: string): readonly z.ZodType[] {
  if (surface !== 'diagnostics' || asked === undefined) return SCHEMAS[surface]
  const path = asked.target.split('?', 1)[0]?.slice(prefix.length).split('/') ?? []
  const route = ROUTES.find((given) => {
    const parts = given.path.split('/')
    return parts.length === path.length && parts.every((part, i) => part === path[i] || part.startsWith('{'))
  })
  return route === undefined ? (path.length <= 2 ? SCHEMAS.diagnostics.slice(0, 1) : []) : [route.response]
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(Buffer.from(text, 'latin1').toString('utf8'))
  } catch {
    return undefined
  }
}

/** Whether `schema` reads `value` and drops nothing of it. */
function isWhole(schema: z.ZodType, value: unknown): boolean {
  const { success, data } = schema.safeParse(value)
  return success && JSON.stringify(data).length === JSON.stringify(value).length
}

function checkHeaders(headers: Answered['headers']): string[] {
  const wrong = headers.filter(([name]) => name.startsWith('access-control-')).map(([name]) => `carries ${name}`)
  const cache = headers.find(([name]) => name === 'cache-control')?.[1]
  if (!cache?.includes('no-store')) wrong.push('may be cached')
  return wrong
}

function checkProblem({ status, headers, body }: Answered): string[] {
  const value = parseJson(body) as Problem | undefined
  const problem = Problem.strict().safeParse(value)
  if (!problem.success) return [`${status} is no problem`]
  const wrong: string[] = []
  const { code } = problem.data
  if (headers.find(([name]) => name === 'content-type')?.[1] !== 'application/problem+json')
    wrong.push('has another type')
  if (problem.data.status !== status) wrong.push(`${status} says that it is ${problem.data.status}`)
  if (Buffer.byteLength(body, 'latin1') > 2_048) wrong.push('is longer than a problem')
  if (body.includes(ECHO)) wrong.push('repeats what was sent')
  if (status >= 500 && status !== 501 && !INJECTED.has(code)) wrong.push(`${status} ${code} that was not injected`)
  return wrong
}

function checkBody(surface: Surface, answer: Answered, asked: Asked | undefined, prefix: string): string[] {
  const { status, headers, body } = answer
  const type = headers.find(([name]) => name === 'content-type')?.[1] ?? ''
  if (type.startsWith('text/event-stream')) {
    const frames = /^(?:retry: \d+\n|id: \S+\n|event: (?:ready|gap|site_event|end)\n|data: \{.*\}\n|:.*\n|\n)+$/
    return surface === 'relay' && frames.test(body) ? [] : ['is not a valid event stream']
  }
  if (!type.startsWith('application/json')) return [`${status} has the type ${type}`]
  const value = parseJson(body)
  const fits = schemasFor(surface, asked, prefix).some((schema) => isWhole(schema, value))
  return fits ? [] : [`${status} is not what its schema says`]
}

/** Returns everything that is wrong with one response; `asked` is absent when its request is unknown. */
export function judgeAnswer(surface: Surface, answer: Answered, asked: Asked | undefined, prefix: string): string[] {
  const { status, headers, body } = answer
  if (status === 0) return ['has no status line']
  const text = body + headers.map((pair) => pair.join(':')).join('\n')
  const wrong = text.includes(PLANTED) ? ['holds what was planted'] : []
  if (headers.some(([, value]) => value.includes(ECHO))) wrong.push('repeats what was sent in a header')
  if (asked?.authorized === false && status < 400) wrong.push(`${status} for an unauthenticated caller`)
  // The platform's parser rejects input before our code runs.
  if (UNPARSED.has(status) && body === '') return wrong
  wrong.push(...checkHeaders(headers))
  if (status === 204 || status === 304 || asked?.method === 'HEAD')
    return status >= 500 && status !== 501 ? [...wrong, `${status}`] : wrong
  if (status >= 300 && status < 400) return [...wrong, 'leads elsewhere']
  return [...wrong, ...(status >= 400 ? checkProblem(answer) : checkBody(surface, answer, asked, prefix))]
}

/** How many requests may wait on one connection, by default; a connection that sends more is closed. */
const PIPELINED = 16

/** Everything that is wrong with what came back on one connection. */
export function judge(attack: Attack, { answers, rest, ended }: Exchange, prefix: string): string[] {
  const { surface, asked, lies, ending } = attack
  if (ending === 'hang-up') return []
  const wrong = answers.flatMap((answer, i) => {
    const known = !lies || i === 0 ? asked[i] : undefined
    return judgeAnswer(surface, answer, known, prefix)
  })
  if (!ended) wrong.push('was never answered')
  const mustAnswer = ending === 'read' && asked.length <= PIPELINED
  if (mustAnswer && answers.length === 0) wrong.push('was closed without an answer')
  if (mustAnswer && rest !== '') wrong.push('was cut off within an answer')
  return wrong
}
