/** Takes out of an incident what could name a person or carry a secret: an allow list, by the schema of each row. */
import type * as z from 'zod'
import { LifecycleReason, OTHER, UNSPECIFIED } from '../internal/contract/connections.js'
import { NODE_COUNTERS, RecoveryReason, TERMINAL_REASONS } from '../internal/contract/delivery.js'
import { encodePart, randomUuid } from '../internal/contract/ids.js'
import { ProblemCode } from '../internal/http/problem.js'
import type { Incident, IncidentPart, Missing } from './format.js'
import { PART_BY_ROUTE, type Row } from './parts.js'

/** Constants of the library, which identify no user. Any other value becomes `other`. */
const WORDS: ReadonlySet<string> = new Set([
  ...LifecycleReason.options,
  ...TERMINAL_REASONS,
  ...Object.values(NODE_COUNTERS).flat(),
  ...RecoveryReason.out.options,
  OTHER,
  UNSPECIFIED,
  'client_closed',
  'server_closed',
])

const CODES: readonly string[] = ProblemCode.options

/** Free text of people. */
const TEXTS = /^(?:title|description|message|detail)$/

/** What a pseudonym begins with, by the field that the id was first seen in. */
function prefixOf(field: string): string {
  if (field === 'owner') return 'user'
  if (field === 'name') return 'action'
  const [, name] = /^(?:last_|current_)?(\w+?)(?:_id|_names?|s)?$/.exec(field) ?? []
  return (name ?? 'id').replaceAll('_', '-')
}

/**
 * @returns what replaces each id, the same for the same id, in the form that the schema requires. The pseudonyms are random:
 * no key leads back.
 */
function createPseudonyms(): (id: string, field: string, schema?: z.ZodType) => string {
  const known = new Map<string, string>()
  const runs = new Map<string, string>()
  return (id, field, schema) => {
    const pseudonym = known.get(id) ?? `${prefixOf(field)}-${randomUuid().replaceAll('-', '').slice(0, 12)}`
    if (schema && !schema.safeParse(pseudonym).success) return redrawn(id, schema, runs)
    known.set(id, pseudonym)
    return pseudonym
  }
}

/**
 * `text` with each letter and digit drawn at random, where `schema` accepts another. A run of them is replaced by the same one
 * wherever it stands, so that the trace id of a trace stays that of its rows.
 */
function redrawn(text: string, schema: z.ZodType, runs: Map<string, string>): string {
  let whole = text
  for (const { 0: run, index } of text.matchAll(/[0-9a-z]+/gi)) {
    const within = (part: string, at = index) => whole.slice(0, at) + part + whole.slice(at + part.length)
    const accepted = (part: string, at?: number) => schema.safeParse(within(part, at)).success
    const before = runs.get(run)
    if (before !== undefined && accepted(before)) whole = within(before)
    else
      for (let at = index; at < index + run.length; at++) {
        const isUpper = /[A-Z]/.test(text[at] as string)
        const drawn = [...randomUuid().replaceAll('-', '')].map((digit) => (isUpper ? digit.toUpperCase() : digit))
        whole = within(drawn.find((digit) => accepted(digit, at)) ?? (text[at] as string), at)
      }
    runs.set(run, whole.slice(index, index + run.length))
  }
  return whole
}

type Pseudonym = ReturnType<typeof createPseudonyms>

/** The fields of a zod schema that are read here, whichever kind it is. */
interface Definition {
  readonly type: string
  readonly shape?: Readonly<Record<string, z.ZodType>>
  readonly element?: z.ZodType
  readonly innerType?: z.ZodType
  readonly out?: z.ZodType
  readonly options?: readonly z.ZodType[]
  readonly valueType?: z.ZodType
  readonly format?: string
}

const definitionOf = (schema: z.ZodType) => schema.def as unknown as Definition

/** The canonical name of a stream with its ids replaced, so that the user of it stays the user of other rows. */
function redactStream(stream: string, pseudonym: Pseudonym): string {
  const [users, user, ...rest] = stream.split('/')
  if (users !== 'users' || user === undefined) return pseudonym(stream, 'stream')
  let id = user
  try {
    id = decodeURIComponent(user)
  } catch {
    // Not one that the library has made.
  }
  return `users/${encodePart(pseudonym(id, 'user_id'))}/${pseudonym(rest.join('/'), 'stream')}`
}

function redactText(value: string, field: string, pseudonym: Pseudonym, schema?: z.ZodType): string {
  if (/(?:^|_)reason$/.test(field)) return WORDS.has(value) ? value : OTHER
  return field === 'stream' ? redactStream(value, pseudonym) : pseudonym(value, field, schema)
}

/** Maps from words to numbers keep the words of the library; those of the host are added up. */
function redactCounts(value: Row): Record<string, number> {
  const kept: Record<string, number> = {}
  for (const [name, count] of Object.entries(value)) {
    const word = WORDS.has(name) ? name : OTHER
    kept[word] = (kept[word] ?? 0) + (typeof count === 'number' ? count : 0)
  }
  return kept
}

/** `value` with what `schema` proves to be harmless: numbers, flags, instants and the words of an enum. */
function redactValue(schema: z.ZodType, value: unknown, field: string, pseudonym: Pseudonym): unknown {
  if (value === null || value === undefined) return value
  const { type, shape, element, innerType, out, options, valueType, format } = definitionOf(schema)
  if (shape) {
    const names = Object.keys(shape).filter((name) => Object.hasOwn(value as object, name))
    return Object.fromEntries(
      names.map((name) => [name, redactValue(shape[name] as z.ZodType, (value as Row)[name], name, pseudonym)]),
    )
  }
  if (element && Array.isArray(value)) return value.map((each) => redactValue(element, each, field, pseudonym))
  if (innerType) {
    const isText = TEXTS.test(field) && type === 'nullable'
    return isText ? null : redactValue(innerType, value, field, pseudonym)
  }
  if (out) return redactValue(out, value, field, pseudonym)
  if (type === 'enum' || type === 'literal') return value
  if (type === 'union' && options) {
    const isName = options.some((option) => definitionOf(option).type === 'enum' && option.safeParse(value).success)
    return isName || typeof value !== 'string' ? value : redactText(value, field, pseudonym, schema)
  }
  if (typeof value === 'number' || typeof value === 'boolean') return value
  if (type === 'record') return valueType && definitionOf(valueType).type === 'number' ? redactCounts(value as Row) : {}
  if (type === 'string' && typeof value === 'string') {
    const isInstant =
      (format ?? (schema as { format?: unknown }).format) === 'datetime' && schema.safeParse(value).success
    return isInstant ? value : redactText(value, field, pseudonym, schema)
  }
  // Arbitrary JSON of the host may identify a user.
  return null
}

function redactPart({ route, rows, answer }: IncidentPart, pseudonym: Pseudonym): IncidentPart[] {
  const part = PART_BY_ROUTE.get(route)
  if (!part) return []
  const redacted = (row: Row) => redactValue(part.row, row, '', pseudonym) as Row
  return [{ route, ...(rows && { rows: rows.map(redacted) }), ...(answer && { answer: redacted(answer) }) }]
}

/** What the router said in its own words goes; the code of a problem stays. */
function redactMissing(missing: Missing, pseudonym: Pseudonym): Missing {
  const { of, detail, reason, route } = missing
  const row = PART_BY_ROUTE.get(route)?.row
  const shape = (row && definitionOf(row).shape) ?? {}
  const replaced =
    of &&
    Object.fromEntries(
      Object.entries(of).map(([name, value]) => {
        const schema = shape[name]
        return [name, schema ? String(redactValue(schema, value, name, pseudonym)) : redactText(value, name, pseudonym)]
      }),
    )
  const [, code] = /^\d{3} ([a-z_]+)/.exec(detail) ?? []
  const isOurs = reason !== 'forbidden' && reason !== 'unreachable'
  return {
    ...missing,
    route: /^[/a-z{}_.?=&-]*$/.test(route) ? route : '/',
    of: replaced,
    detail: isOurs ? detail : (CODES.find((known) => known === code) ?? 'the request failed'),
  }
}

/**
 * The incident without names and contents. Ids become random pseudonyms, the same id the same one throughout the file.
 * Kept are numbers, flags, instants, and words of the library; metadata, payloads, titles, descriptions and entries of the
 * host go.
 */
export function redactIncident(incident: Incident): Incident {
  const pseudonym = createPseudonyms()
  const nullable = (id: string | null, field: string) => (id === null ? null : pseudonym(id, field))
  // Users first: who is seen as a user of connections is one wherever else the id stands.
  const parts = incident.parts.flatMap((part) => redactPart(part, pseudonym))
  return {
    ...incident,
    router_version: /^\d+\.\d+\.\d+/.exec(incident.router_version ?? '')?.[0] ?? null,
    deployment: { ...incident.deployment, id: nullable(incident.deployment.id, 'deployment_id') },
    user: nullable(incident.user, 'user_id'),
    redaction: { id: randomUuid() },
    extensions: {},
    missing: incident.missing.map((missing) => redactMissing(missing, pseudonym)),
    parts,
  }
}
