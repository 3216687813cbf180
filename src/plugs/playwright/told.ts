/** Builds the reports of a browser context and of a page from what the host returned for it. */
import type { BrowserWindowRegistry, ReportBrowserWindowInput } from '../../contract/browser-windows.js'
import type { ContextRegistry, ReportContextInput } from '../../contract/contexts.js'
import { Refusal } from '../../refusal.js'
import type { Presence } from '../follow/presences.js'

/** The owner of a browser context or a page, with data that only the host knows. */
export type BrowserIdentity = Pick<ReportContextInput, 'user_id' | 'client_id' | 'instance_id' | 'ownership'> &
  Partial<Pick<ReportContextInput, 'context_id' | 'client_type' | 'status'>> &
  Pick<ReportBrowserWindowInput, 'focused' | 'type' | 'state' | 'incognito' | 'capacity' | 'draining'> & {
    /**
     * The window id: of a browser context its own id, of a page the window that contains it. @default random; for a
     * page its browser context's
     */
    window_id?: string | undefined
    /**
     * For a page: the task it works on, or `null` for none. `ownership` then defaults to `worker`. @default unchanged
     * in the registry, where you assign and release tasks
     */
    task_id?: string | null | undefined
  }

const NO_WORKER = new Refusal('invalid_input', 'task_id: the context was first reported as no worker')

/** Identifies a reported record: the same id of another owner is another record. */
const keyOf = (id: string, { user_id, client_id }: BrowserIdentity) => [user_id, client_id, id].join('\n')

/** Keeps an id for as long as the owner stays the same, because an id belongs to a user and client. */
export function stableId(newId: () => string) {
  let kept: { id: string; key: string } | undefined
  return (identity: BrowserIdentity, given: string | undefined): string => {
    if (kept?.key !== keyOf('', identity)) kept = { id: given ?? newId(), key: keyOf('', identity) }
    return kept.id
  }
}

/** A page as a context, which is given its task where the registry has another one. */
export function pagePresence(
  contexts: ContextRegistry,
  context_id: string,
  windowId: () => string | null,
  given: BrowserIdentity,
  refused: (error: Refusal) => void,
) {
  const { task_id, window_id, client_type = 'browser' } = given
  const hasTask = typeof task_id === 'string'
  // Without a task the owner is reported as the user: a context once reported as user-owned never gets tasks.
  const ownership = given.ownership ?? (task_id === undefined ? 'user-owned' : 'worker')
  const status = given.status ?? (ownership === 'worker' && !hasTask ? 'idle' : 'active')
  const { user_id, client_id, instance_id = null } = given
  const own = { context_id, user_id, client_id, instance_id, client_type, ownership, status }
  async function setTask(task: string | null, now: string | null): Promise<void> {
    if (now === task) return
    if (now !== null) await contexts.releaseTask(context_id)
    if (task !== null && (await contexts.assignTask(context_id, task)) === null) refused(NO_WORKER)
  }
  return {
    key: keyOf(context_id, given),
    async report() {
      const context = await contexts.report({ ...own, window_id: window_id ?? windowId() })
      try {
        if (task_id !== undefined) await setTask(task_id, context.task_id)
      } catch (error) {
        // The context itself was written, so a refused task must not mark it as unwritten.
        if (!(error instanceof Refusal) || error.code !== 'invalid_input') throw error
        refused(error)
      }
    },
    close: () => contexts.close(context_id),
  } satisfies Presence
}

/** A browser context as a window, with as many tabs as it has pages. */
export function windowPresence(
  windows: BrowserWindowRegistry,
  window_id: string,
  tabs: () => number,
  given: BrowserIdentity,
) {
  const { user_id, client_id, ownership, focused, type, state, incognito, capacity, draining } = given
  const own = { window_id, user_id, client_id, ownership, focused, type, state, incognito, capacity, draining }
  return {
    key: keyOf(window_id, given),
    report: () => windows.report({ ...own, tab_count: tabs() }),
    close: () => windows.close(window_id),
  } satisfies Presence
}
