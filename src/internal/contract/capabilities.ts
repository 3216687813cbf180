/**
 * Capabilities: the operations that a set of inspectors supports, as shown by the router and named in 501 responses.
 */
import * as z from 'zod'
import { FAMILIES, type Inspectors } from './families.js'
import type { Family } from './family.js'
import { type JsonObject, JsonRecord } from './json.js'

type Defined = (typeof FAMILIES)[keyof typeof FAMILIES]
type Names<T> = keyof T & string
type OperationOf<F> = F extends { operations: infer Operations } ? Names<Operations> : never
type ListedOf<F> = F extends { listed: infer Listed } ? Names<Listed> : never
type BooleanOf<F> = F extends { isListed: true } ? never : F extends Family ? F['capability'] | OperationOf<F> : never

/** One capability: an inspector, or an optional method of one. */
interface Operation {
  /** The key of the inspector. */
  inspector: string
  /** The capability of the inspector as such. */
  within: string
  name: string
  method: string | null
  /** Named in `extensions.operations`, where the others are booleans. */
  isListed: boolean
}

/** Every capability of `families`: the inspectors first, then their optional operations. */
function operationsOf(families: Readonly<Record<string, Family>>): Operation[] {
  const all = Object.entries(families).flatMap(([inspector, { capability: within, operations, listed, isListed }]) => {
    const one = (name: string, method: string | null, isNamed: boolean): Operation => ({
      inspector,
      within,
      name,
      method,
      isListed: isNamed || isListed === true,
    })
    return [
      one(within, null, false),
      ...Object.entries(operations).map(([name, method]) => one(name, method, false)),
      ...Object.entries(listed ?? {}).map(([name, method]) => one(name, method, true)),
    ]
  })
  return [...all.filter(({ method }) => method === null), ...all.filter(({ method }) => method !== null)]
}

/** The capabilities of `families`, and how to find those of given inspectors. Inspects objects only; calls nothing. */
export function capabilitiesIn(families: Readonly<Record<string, Family>>) {
  const operations = operationsOf(families)
  const byName = new Map(operations.map((operation) => [operation.name, operation]))
  const namesOf = (listed: boolean) => operations.filter(({ isListed }) => isListed === listed).map(({ name }) => name)

  /** Whether `inspectors` are capable of `name`. */
  function offers(inspectors: object, name: string): boolean {
    const { inspector: key, method } = byName.get(name) as Operation
    const inspector: unknown = inspectors[key as keyof object]
    if (!inspector || method === null) return Boolean(inspector)
    return typeof inspector[method as keyof object] === 'function'
  }

  /** All that `inspectors` are capable of. */
  const offeredBy = (inspectors: object): ReadonlySet<string> =>
    new Set([...byName.keys()].filter((name) => offers(inspectors, name)))

  return {
    names: [...byName.keys()],
    /** Capabilities with a boolean field. */
    booleans: namesOf(false),
    /** The capability of the inspector that `name` is, or is a part of. */
    inspectorOf: (name: string) => (byName.get(name) as Operation).within,
    /** The key of the inspector that `name` is, or is a part of. */
    keyOf: (name: string) => (byName.get(name) as Operation).inspector,
    offers,
    offeredBy,
    /** Returns the capabilities object of `inspectors`, including views derived from them. */
    of(inspectors: object, extensions: JsonObject, views: readonly string[]) {
      const offered = offeredBy(inspectors)
      const listed = [...namesOf(true).filter((name) => offered.has(name)), ...views].sort()
      return {
        ...Object.fromEntries(namesOf(false).map((name) => [name, offered.has(name)])),
        extensions: listed.length > 0 ? { ...extensions, operations: listed } : extensions,
      }
    },
  }
}

export const CAPABILITIES = capabilitiesIn(FAMILIES)

/** The name of one capability, as used in a route's `needs` and in 501 responses. */
export const Capability = z.enum(
  CAPABILITIES.names as (Defined['capability'] | OperationOf<Defined> | ListedOf<Defined>)[],
)
export type Capability = z.infer<typeof Capability>

function booleanOf(name: string) {
  const within = CAPABILITIES.inspectorOf(name)
  const condition = name === within ? 'this inspector is there' : `the inspector \`${within}\` offers this operation`
  return z.boolean().describe(`Whether ${condition}.`)
}

/**
 * The capabilities object. True means that the route is available; it is not a readiness check and promises no entries.
 * Operations without a boolean are listed, sorted, in `extensions.operations`, which is absent if empty.
 */
export const Capabilities = z
  .object({
    ...(Object.fromEntries(CAPABILITIES.booleans.map((name) => [name, booleanOf(name)])) as Record<
      BooleanOf<Defined>,
      z.ZodBoolean
    >),
    extensions: JsonRecord.describe(
      "The host's own entries, `deployment_id` and `mode`; `operations` lists operations without a boolean.",
    ),
  })
  .describe('The available operations. This is not a readiness check and promises no entries.')
export type Capabilities = z.infer<typeof Capabilities>

/**
 * Returns the capabilities of `inspectors`, including `views` over several of them. Inspects objects only; calls
 * nothing.
 */
export function capabilitiesOf(
  inspectors: Inspectors,
  extensions: JsonObject = {},
  views: readonly string[] = [],
): Capabilities {
  return CAPABILITIES.of(inspectors, extensions, views) as Capabilities
}

// Completeness of aggregates: what was not read.

/** The sources an aggregate may name, each by its capability. */
export const SourceName = z
  .enum(Object.values(FAMILIES).map(({ capability }) => capability))
  .describe('A source of aggregates, by its capability.')
export type SourceName = z.infer<typeof SourceName>

/** The completeness block. */
export const Completeness = z
  .object({
    complete: z.boolean().describe('Whether every source was read to its end.'),
    truncated_sources: z.array(SourceName).describe('Sources that were cut short, failed or ran out of time.'),
    examined: z
      .partialRecord(SourceName, z.int().min(0))
      .describe('Entries examined per source; 0 for a source that failed.'),
    limits: z.partialRecord(SourceName, z.int().min(1)).describe('Maximum entries examined per source.'),
  })
  .describe(
    'How complete this response is. `complete` refers to the sources read for this response, never to the whole application; if it is false, every `observed_…` value is a sample.',
  )
export type Completeness = z.infer<typeof Completeness>
