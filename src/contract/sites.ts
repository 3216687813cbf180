/** The sites family: what a local application declares about itself, and where such declarations are kept. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'
import { type LastEvent, positionText } from './event-bus.js'
import type { Family } from './family.js'
import { Id, idField, SegmentId, Timestamp } from './ids.js'
import { count, defineOptions, type Input, share } from './options.js'
import type { Awaitable, InspectionContext, Page, PageQuery, Pingable, Versioned } from './page.js'

export const SiteMode = z
  .enum(['cooperative', 'observe'])
  .describe('`cooperative`: actions may be invoked. `observe`: events only.')
export type SiteMode = z.infer<typeof SiteMode>

const NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,127}$/
/** The name of an event, e.g. `note_changed`. */
export const EventName = z.string().regex(NAME, 'must be a letter and up to 127 letters, digits, "_", "." or "-"')
/** The name of an action: a bounded domain name such as `archive_note`, never a generic "execute". */
export const ActionName = EventName

// Such a name would make the allowlist meaningless: whoever may invoke it may do anything.
const GENERIC_ACTION_NAMES = new Set(['execute', 'exec', 'eval', 'run', 'invoke', 'call', 'command', '*'])

/** Whether `name` stands for any action at all, in any case. */
export function isGenericActionName(name: string): boolean {
  return GENERIC_ACTION_NAMES.has(name.toLowerCase())
}

// Enough for every event or action of an application; 512 names of 128 characters keep a record within 64 KiB.
const NAMES_MAX = 256
const TITLE_LENGTH = 256

const ActionInvocation = z.boolean().describe('Whether actions may be invoked at all.')
const CapabilityProfile = z.strictObject({ action_invocation: ActionInvocation.default(false) })

const EVENT_NAMES = 'Names that may be published; empty means no restriction.'
const ACTION_NAMES = 'Names that may be invoked; empty means none.'
const PROFILE = 'What the site lets be done with it.'
const TITLE = 'What people call it; `null` for nothing.'

/** What an owner may say about a site: the body of `PUT /sites/{site_id}`. It replaces the whole declaration. */
export const SiteDefinition = z
  .strictObject({
    mode: SiteMode.describe('What it is open to.'),
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
  .describe('What an owner says about a site. It replaces the whole declaration.')
export type SiteDefinition = z.input<typeof SiteDefinition>

/** A site as it is put into a registry. */
export const SiteInput = z.object({ ...SiteDefinition.shape, site_id: SegmentId, owner: Id })
export type SiteInput = z.input<typeof SiteInput>

/** A site: the descriptor that decides which events are projected and which actions may be invoked. */
export const Site = z
  .object({
    site_id: idField('site_id'),
    owner: z.string().describe('The user that owns the descriptor.'),
    mode: SiteMode.describe('What it is open to.'),
    title: z.string().nullable().describe(TITLE),
    event_names: z.array(z.string()).describe(EVENT_NAMES),
    action_names: z.array(z.string()).describe(ACTION_NAMES),
    capability_profile: z.object({ action_invocation: ActionInvocation }).describe(PROFILE),
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

/** What becomes of it. */
export const SITE_EXAMPLE: Site = {
  site_id: 'notes',
  owner: 'ada',
  ...DEFINITION_EXAMPLE,
  created_at: '2026-01-15T09:41:00.000Z',
  updated_at: '2026-01-15T09:41:00.000Z',
}

/** A site as `/sites` shows it: what was declared, and what is known of its life. `null` means unknown. */
export const SiteRow = Site.extend({
  sessions: z
    .int()
    .min(0)
    .nullable()
    .describe(
      'Sessions of its owner that have not ended. `null` also where there are more than a request may look at.',
    ),
  last_event_at: Timestamp.nullable().describe('When its last event was published; `null` where none is remembered.'),
  last_position: z
    .string()
    .nullable()
    .describe('Where that stands in its topic, `<epoch>:<seq>`, as viewers read it in the `id` of a frame.'),
}).describe('A site as it was declared, and what is known of its life. `null` means unknown.')
export type SiteRow = z.infer<typeof SiteRow>

/** A site and whose it is. */
export type SiteKey = Pick<Site, 'site_id' | 'owner'>

/** Filters of `/sites`. */
export const SiteFilter = z.object({
  owner: Id.optional().describe('Only what this user owns.'),
  mode: SiteMode.optional().describe('Only in this mode.'),
})
export type SiteFilter = z.infer<typeof SiteFilter>

/** Reads a registry of sites. `sessions` may be left `null`: the router asks an inspector of sessions for it. */
export interface SiteInspector extends Pingable, Versioned {
  listSites(filter: SiteFilter, page: PageQuery, ctx: InspectionContext): Awaitable<Page<SiteRow>>
  getSite(siteId: string, ctx: InspectionContext): Awaitable<SiteRow | null>
}

const NO_LIFE = { last_event_at: null, last_position: null }

/** What the last event says of a site. A bus takes any text for an instant; what is none says nothing. */
export function lastEventFields(last: LastEvent | null): Pick<SiteRow, 'last_event_at' | 'last_position'> {
  if (last === null || !Timestamp.safeParse(last.at).success) return NO_LIFE
  return { last_event_at: last.at, last_position: positionText(last.position) }
}

/** Refuses generic names before any shape is checked, so that `*` is named for what it is. */
export function refuseGenericActionNames(definition: unknown): void {
  const names = (definition as { action_names?: unknown } | null)?.action_names
  if (Array.isArray(names) && names.some((name) => typeof name === 'string' && isGenericActionName(name)))
    throw new Refusal('generic_action_name')
}

/** Where sites are kept. Whatever only reads (ingest, gate, event stream) needs `get` alone. */
export interface SiteRegistry {
  get(siteId: string): Promise<Site | null>
  /**
   * Inserts or replaces the whole declaration; times are the registry's.
   *
   * @throws Refusal `invalid_input`, `generic_action_name`, `owner_mismatch` (a site of another owner is never
   * replaced), `capacity_exceeded`.
   */
  put(site: SiteInput): Promise<{ created: boolean; site: Site }>
  /** Whether it was there. Given `owner`, a site of another owner stays and the answer is false. */
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
  components: { SiteRow, SiteMode },
} as const satisfies Family<SiteInspector>
