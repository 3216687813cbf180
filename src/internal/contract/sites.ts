/** Sites: the declarations of local applications. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'
import { answerOf } from './answer.js'
import { type LastEvent, positionText } from './event-bus.js'
import type { Family } from './family.js'
import { Id, idField, SegmentId, Timestamp } from './ids.js'
import { count, defineOptions, type Input, inputObject, share } from './options.js'
import type { Awaitable, InspectionContext, Page, PageQuery, Pingable, Versioned } from './page.js'

/** Mode of a site. */
export const SiteMode = z
  .enum(['cooperative', 'observe'])
  .describe('`cooperative`: actions may be invoked. `observe`: events only.')
export type SiteMode = z.infer<typeof SiteMode>

const NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,127}$/
/** The name of an event, e.g. `note_changed`. */
export const EventName = z.string().regex(NAME, 'must be a letter and up to 127 letters, digits, "_", "." or "-"')
/** The name of an action: a bounded domain name such as `archive_note`, never a generic "execute". */
export const ActionName = EventName

// Such a name would defeat the allowlist: a viewer that may invoke it may do anything.
const GENERIC_ACTION_NAMES = new Set(['execute', 'exec', 'eval', 'run', 'invoke', 'call', 'command', '*'])

/** Whether `name` stands for any action, ignoring case. */
export function isGenericActionName(name: string): boolean {
  return GENERIC_ACTION_NAMES.has(name.toLowerCase())
}

// Enough for every event or action of an application; 512 names of 128 characters keep a record within 64 KiB.
const NAMES_MAX = 256
const TITLE_LENGTH = 256

const ActionInvocation = z.boolean().describe('Whether actions may be invoked at all.')
const CapabilityProfile = inputObject({ action_invocation: ActionInvocation.default(false) })

const EVENT_NAMES = 'Names that may be published; empty means no restriction.'
const ACTION_NAMES = 'Names that may be invoked; empty means none.'
const PROFILE = 'The actions that viewers may invoke.'
const TITLE = 'What people call it; `null` for nothing.'

/** The declaration of a site: the body of `PUT /sites/{site_id}`. It replaces the previous one. */
export const SiteDefinition = z
  .strictObject({
    mode: SiteMode.describe('Its visibility.'),
    title: z
      .string()
      .max(TITLE_LENGTH)
      .regex(/^\P{Cc}*$/u)
      .nullable()
      .default(null)
      .describe(TITLE),
    event_names: z.array(EventName).max(NAMES_MAX).default([]).describe(EVENT_NAMES),
    action_names: z.array(ActionName).max(NAMES_MAX).default([]).describe(ACTION_NAMES),
    capability_profile: CapabilityProfile.default({ action_invocation: false }).describe(PROFILE),
  })
  .describe('The declaration of a site. It replaces the previous one.')
export type SiteDefinition = z.input<typeof SiteDefinition>

/** The input of a site registry. */
export const SiteInput = inputObject({
  ...SiteDefinition.shape,
  /** Id of the site. */
  site_id: SegmentId,
  /** The user that owns the site. */
  owner: Id,
})
export type SiteInput = z.input<typeof SiteInput>

/** Options of `delete`. */
export const DeleteSiteInput = inputObject({
  /** Delete the site only if this user owns it. @default the site of any owner */
  owner: Id.optional(),
})

/** A site: the descriptor that decides which events are projected and which actions may be invoked. */
export const Site = z
  .object({
    site_id: idField('site_id'),
    owner: z.string().describe('The user that owns the descriptor.'),
    mode: SiteMode.describe('Its visibility.'),
    title: z.string().nullable().describe(TITLE),
    event_names: z.array(z.string()).describe(EVENT_NAMES),
    action_names: z.array(z.string()).describe(ACTION_NAMES),
    capability_profile: z
      .object({
        /** Whether viewers may invoke the actions of the site. */
        action_invocation: ActionInvocation,
      })
      .describe(PROFILE),
    created_at: Timestamp.describe('When it was first declared.'),
    updated_at: Timestamp.describe('When it was last declared.'),
  })
  .describe('A site: the descriptor that decides which events are projected and which actions may be invoked.')
export type Site = z.infer<typeof Site>

/** A declaration, for the readers of documents. */
export const DEFINITION_EXAMPLE = {
  mode: 'cooperative' as const,
  title: 'Notes',
  event_names: ['note_changed'],
  action_names: ['archive_note'],
  capability_profile: { action_invocation: true },
}

/** The resulting site. */
export const SITE_EXAMPLE: Site = {
  site_id: 'notes',
  owner: 'ada',
  ...DEFINITION_EXAMPLE,
  created_at: '2026-01-15T09:41:00.000Z',
  updated_at: '2026-01-15T09:41:00.000Z',
}

/** A site in `/sites`: its declaration and activity. `null` means unknown. */
export const SiteRow = Site.extend({
  sessions: z
    .int()
    .min(0)
    .nullable()
    .describe('Open sessions of its owner; `null` also if there are more than a request may examine.'),
  last_event_at: Timestamp.nullable().describe('When its last event was published; `null` where none is remembered.'),
  last_position: z
    .string()
    .nullable()
    .describe("The position of that event, `<epoch>:<seq>`, as in the `id` of a viewer's frame."),
}).describe("A site's declaration and activity. `null` means unknown.")
export type SiteRow = z.infer<typeof SiteRow>

/** `SiteRow` as routes answer it. */
export const SiteRowAnswer = answerOf(SiteRow, ['site_id', 'owner'], {
  capability_profile: answerOf(Site.shape.capability_profile, []),
})
export type SiteRowAnswer = z.output<typeof SiteRowAnswer>
/** `SiteRow` as an inspector returns it: a field that is absent is not known. */
export type SiteRowInput = z.input<typeof SiteRowAnswer>

/** A site and whose it is. */
export type SiteKey = Pick<Site, 'site_id' | 'owner'>

/** Filters of `/sites`. */
export const SiteFilter = z.object({
  owner: Id.optional().describe('Only records owned by this user.'),
  mode: SiteMode.optional().describe('Only in this mode.'),
})
export type SiteFilter = z.infer<typeof SiteFilter>

/** Reads a site registry. `sessions` may be `null`: the router reads it from a session inspector. */
export interface SiteInspector extends Pingable, Versioned {
  /** Lists sites under `filter`, one page at a time. */
  listSites(filter: SiteFilter, page: PageQuery, ctx: InspectionContext): Awaitable<Page<SiteRowInput>>
  /** Returns a site, or `null` if it is unknown. */
  getSite(siteId: string, ctx: InspectionContext): Awaitable<SiteRowInput | null>
}

const NO_LIFE = { last_event_at: null, last_position: null }

/** The fields of a site derived from its last event. A bus may store an invalid timestamp, which is ignored. */
export function lastEventFields(last: LastEvent | null): Pick<SiteRow, 'last_event_at' | 'last_position'> {
  if (last === null || !Timestamp.safeParse(last.at).success) return NO_LIFE
  return { last_event_at: last.at, last_position: positionText(last.position) }
}

/** Refuses generic names before the schema is checked, so that the error names the actual problem. */
export function refuseGenericActionNames(definition: unknown): void {
  const names = (definition as { action_names?: unknown } | null)?.action_names
  if (Array.isArray(names) && names.some((name) => typeof name === 'string' && isGenericActionName(name)))
    throw new Refusal('generic_action_name')
}

/** Where sites are kept. Whatever only reads (ingest, gate, event stream) needs `get` alone. */
export interface SiteRegistry {
  /** Returns a site, or `null` if it is unknown. */
  get(siteId: string): Promise<Site | null>
  /**
   * Inserts or replaces the whole declaration; times are the registry's.
   *
   * @throws Refusal `invalid_input`, `generic_action_name`, `owner_mismatch` (a site of another owner is never
   * replaced), `capacity_exceeded`.
   */
  put(site: SiteInput): Promise<{ created: boolean; site: Site }>
  /**
   * Deletes the site. @returns whether it existed. With `owner`, a site of another owner is kept and the result is
   * false.
   */
  delete(siteId: string, options?: { owner?: string }): Promise<boolean>
}

/** What both registries of sites take. In a shared store each bound is that of one shard. */
export const SiteOptions = defineOptions({
  /** Most sites. @default 10000 */
  // They are declared by applications, not by traffic, so more than this is a leak, not a use.
  maxSites: count(10_000),
  /** Most sites of one owner. @default a tenth of `maxSites`, at least 2 */
  maxSitesPerUser: share('maxSites'),
})
export interface SiteOptions extends Input<typeof SiteOptions> {}

/** Sites, for the table of families. */
export const SITE_FAMILY = {
  facility: 'sites',
  capability: 'sites',
  isListed: true,
  methods: { listSites: true, getSite: true },
  operations: {},
  components: { SiteRow: SiteRowAnswer, SiteMode } as Family['components'],
} as const satisfies Family<SiteInspector>
