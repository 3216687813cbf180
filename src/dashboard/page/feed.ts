/** Which families of the deployment have been fed: the overview and the navigation show those, and how to feed the others. */
import { onReset, queryState, unavailableReason } from './answers.js'
import { useAnswer, useLook } from './hooks.js'

export interface FeedFamily {
  readonly name: string
  /** Its pages. */
  readonly paths: readonly string[]
  /** The route whose answer says whether there has been a record. */
  readonly asked: string
  /** The call that feeds it. */
  readonly by: string
}

export const FEEDS: readonly FeedFamily[] = [
  {
    name: 'Clients',
    paths: ['/users', '/connections', '/actions'],
    asked: '/connections/count',
    by: 'connections.connect(client)',
  },
  { name: 'Calls', paths: ['/rpc/pending', '/rpc/ended'], asked: '/rpc/summary', by: 'rpc.open(call)' },
  {
    name: 'Commands',
    paths: ['/delivery/commands', '/delivery/mailboxes', '/delivery/nodes', '/delivery/tenants'],
    asked: '/delivery/summary',
    by: 'dispatcher.dispatch(command)',
  },
  { name: 'Workers', paths: ['/contexts'], asked: '/contexts/count', by: 'contexts.report(context)' },
  {
    name: 'Windows',
    paths: ['/browser-windows'],
    asked: '/browser-windows/count',
    by: 'browserWindows.report(window)',
  },
  {
    name: 'Sites',
    paths: ['/sites', '/sessions', '/subscriptions'],
    asked: '/sites?limit=1',
    by: 'sites.put(site)',
  },
  { name: 'History', paths: ['/history/streams'], asked: '/history/streams?limit=1', by: 'history.append(message)' },
]

/** Whether a number in `value` is above 0, or a list in it has an entry. */
const hasAny = (value: unknown): boolean =>
  typeof value === 'number'
    ? value > 0
    : Array.isArray(value)
      ? value.length > 0
      : typeof value === 'object' && value !== null && Object.values(value).some(hasAny)

/** What counts as a record in the answers of the routes above. */
function hasRecord(answer: unknown): boolean {
  const { total, pending, counters, observed, tracked_commands, by_state, metadata, items } = answer as Record<
    string,
    unknown
  >
  return [total, pending, counters, observed, tracked_commands, by_state, metadata, items].some(hasAny)
}

/** `failed`: it cannot be read; it may have been fed, and is shown. */
export type FeedState = 'fed' | 'failed' | 'unfed' | 'absent' | 'unknown'

export const isShown = (state: FeedState | undefined): boolean => state === 'fed' || state === 'failed'

/** What this tab knows of each family: one that was fed stays so when its records have gone. */
const known = new Map<string, FeedState>()

onReset((isOther) => isOther && known.clear())

function stateOf({ name, asked }: FeedFamily): FeedState {
  const reason = unavailableReason(asked)
  if (reason) return reason.status === 501 ? 'absent' : 'failed'
  const { value, problem } = queryState(asked)
  const before = known.get(name) ?? 'unknown'
  if (before === 'fed' || (value === null && !problem)) return before
  // It is not asked again for this alone.
  const failed = problem?.status === 501 ? 'absent' : before === 'unknown' ? 'failed' : before
  const state = value === null ? failed : hasRecord(value) ? 'fed' : 'unfed'
  known.set(name, state)
  return state
}

/** Asks for a family until it is known whether it was fed. */
function useFeedOf(family: FeedFamily): void {
  const [isUnknown] = useLook(() => [stateOf(family) === 'unknown'])
  useAnswer(isUnknown ? family.asked : null)
}

/** The state of each family, in their order. */
export function useFeed(): readonly FeedState[] {
  for (const family of FEEDS) useFeedOf(family)
  return useLook(() => FEEDS.map(stateOf))
}
