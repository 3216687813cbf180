/** Follows the browser contexts and pages of a browser: they become windows, and contexts in them. */
import { guardErrorHook } from '../../internal/async/hook.js'
import { sleep } from '../../internal/async/timer.js'
import type { BrowserWindowRegistry, ReportBrowserWindowInput } from '../../internal/contract/browser-windows.js'
import {
  checkOptions,
  checkParts,
  FUNCTION,
  required,
  resolveBounds,
  type Shape,
  withMethods,
} from '../../internal/contract/checks.js'
import type { ContextEndReason, ContextRegistry, ReportContextInput } from '../../internal/contract/contexts.js'
import { Refusal } from '../../internal/refusal.js'
import { createPresenceFollower, type Followed, NOT_FOLLOWED, type Presence } from '../follow/presences.js'
import { checkIdentity, FOLLOW_BOUNDS, FOLLOW_OPTIONS, type Follower, type FollowOptions } from '../follow/writer.js'

// Builds the reports of a browser context and of a page from what the host returned for it.

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
function stableId(newId: () => string) {
  let kept: { id: string; key: string } | undefined
  return (identity: BrowserIdentity, given: string | undefined): string => {
    if (kept?.key !== keyOf('', identity)) kept = { id: given ?? newId(), key: keyOf('', identity) }
    return kept.id
  }
}

/** A page as a context, which is given its task where the registry has another one. */
function pagePresence(
  contexts: ContextRegistry,
  context_id: string,
  windowId: () => string | null,
  given: BrowserIdentity,
  reason: () => ContextEndReason | Promise<ContextEndReason>,
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
    close: async () => contexts.close(context_id, await reason()),
  } satisfies Presence
}

/** A browser context as a window, with as many tabs as it has pages. */
function windowPresence(windows: BrowserWindowRegistry, window_id: string, tabs: () => number, given: BrowserIdentity) {
  const { user_id, client_id, ownership, focused, type, state, incognito, capacity, draining } = given
  const own = { window_id, user_id, client_id, ownership, focused, type, state, incognito, capacity, draining }
  return {
    key: keyOf(window_id, given),
    report: () => windows.report({ ...own, tab_count: tabs() }),
    close: () => windows.close(window_id),
  } satisfies Presence
}

/** The members of a page that are used. */
export interface FollowedPage {
  isClosed(): boolean
  on(event: 'close' | 'crash', listener: () => void): unknown
  off(event: 'close' | 'crash', listener: () => void): unknown
}

// A page's type is that of `pages()`: of the many events of the peer, which are overloads, the last one would be taken.
/** The members of a browser context that are used. */
export interface FollowedBrowserContext<P> {
  pages(): readonly P[]
  on(event: 'page', listener: (page: NoInfer<P>) => void): unknown
  on(event: 'close', listener: () => void): unknown
  off(event: 'page', listener: (page: NoInfer<P>) => void): unknown
  off(event: 'close', listener: () => void): unknown
}

/** `context` is an event of later versions: without it a browser context is found at the next look. */
export interface FollowedBrowser<C, P> {
  contexts(): readonly (C & FollowedBrowserContext<P>)[]
  on(event: 'context', listener: (context: C & FollowedBrowserContext<P>) => void): unknown
  on(event: 'disconnected', listener: () => void): unknown
  off(event: 'context', listener: (context: C & FollowedBrowserContext<P>) => void): unknown
  off(event: 'disconnected', listener: () => void): unknown
}

/** Options of `followBrowser`. */
export interface FollowBrowserOptions<C, P> extends FollowOptions {
  /** What pages are written to: that of either composition. */
  contexts: ContextRegistry
  /** What browser contexts are written to. */
  browserWindows: BrowserWindowRegistry
  /**
   * Returns the owner of a browser context (`page` is `null`) and of each page in it. `null` is not followed; its pages
   * are still asked for.
   */
  identify: (context: C, page: P | null) => BrowserIdentity | null | PromiseLike<BrowserIdentity | null>
  /** Ids of windows and contexts that `identify` gives none. @default crypto.randomUUID */
  newId?: (() => string) | undefined
}

/** Follows a browser until it is closed. */
export interface BrowserFollower<C, P> extends Follower {
  /**
   * Calls `identify` again for a browser context or a page, e.g. after its task changed. Ids stay the same for the same
   * user and client; for another owner the record is closed and reported again. `null` closes it permanently. The
   * latest call wins.
   */
  identifyAgain(peer: C | P): Promise<void>
}

const BROWSER: Shape<{ browser: unknown }> = {
  browser: required({
    ...withMethods('contexts', 'on', 'off'),
    expected: 'a Browser of Playwright (contexts, on, off), not a browser type, a context or a page',
  }),
}

const OPTIONS: Shape<FollowBrowserOptions<unknown, unknown>> = {
  ...FOLLOW_OPTIONS,
  contexts: required(withMethods('report', 'close', 'assignTask', 'releaseTask')),
  browserWindows: required(withMethods('report', 'close')),
  identify: required(FUNCTION),
  newId: FUNCTION,
}

const NAMED = ['user_id', 'client_id']
const FIELDS: Record<keyof BrowserIdentity, true> = {
  user_id: true,
  client_id: true,
  instance_id: true,
  client_type: true,
  ownership: true,
  context_id: true,
  status: true,
  window_id: true,
  task_id: true,
  focused: true,
  type: true,
  state: true,
  incognito: true,
  capacity: true,
  draining: true,
}

/** A browser context and its pages. */
interface Window<P> {
  /** The reported id; `null` while it is not reported. */
  id: string | null
  followed: Followed
  readonly pages: Map<P, FollowedPlace>
  release(): void
}

interface FollowedPlace {
  changed(): void
  leave(): void
  learn(): Promise<void>
  release(): void
}

/** A browser that ends announces this shortly after the end of its pages. */
const BROWSER_END_MS = 250

/**
 * Follows `browser`: a browser context is a window, a page is a context in it. Both are reported once `identify` has
 * returned their owner and every `heartbeatMs` after that, and closed when they close or crash, or the browser
 * disconnects, with that reason. It only listens; no URL, title or content of a page is read.
 *
 * @throws TypeError, RangeError for an invalid option.
 *
 * @example
 * const { contexts, browserWindows } = facilities
 * followBrowser(browser, { contexts, browserWindows, identify: () => ({ user_id: 'ada', client_id: 'crawler' }) })
 */
export function followBrowser<C extends object, P extends FollowedPage>(
  browser: FollowedBrowser<C, P>,
  options: FollowBrowserOptions<C, P>,
): BrowserFollower<C, P> {
  checkParts({ browser }, BROWSER)
  checkOptions(options, OPTIONS)
  const { contexts, browserWindows, identify, newId = () => crypto.randomUUID(), onError } = options
  type Context = C & FollowedBrowserContext<P>
  const windows = new Map<C, Window<P> & { learn(): Promise<void> }>()
  let isDisconnected = false
  const report = guardErrorHook(onError)
  const failed = (error: unknown) => report(error, { step: 'write' })
  const follower = createPresenceFollower({ ...resolveBounds(options, FOLLOW_BOUNDS), report, look })

  const asked = async (context: C, page: P | null) =>
    checkIdentity(await identify(context, page), NAMED, Object.keys(FIELDS))

  async function reasonToClose(): Promise<ContextEndReason> {
    await sleep(BROWSER_END_MS)
    return isDisconnected ? 'browser_disconnected' : 'closed'
  }

  function onPage(context: Context, window: Window<P>, page: P): void {
    if (window.pages.has(page) || page.isClosed()) return
    const idOf = stableId(newId)
    let reason: ContextEndReason | Promise<ContextEndReason> = 'closed'
    const learn = async () => {
      const identity = await asked(context, page)
      return (
        identity &&
        (() => {
          const id = idOf(identity, identity.context_id)
          return pagePresence(
            contexts,
            id,
            () => window.id,
            identity,
            () => reason,
            failed,
          )
        })
      )
    }
    const followed = follower.follow(learn)
    const leave = (why: typeof reason = reasonToClose()) => {
      reason = why
      release()
      followed.leave()
      window.pages.delete(page)
      window.followed.changed()
    }
    const closed = () => leave()
    // A page that has crashed is dead: nothing can be done with it but to close it.
    const crashed = () => leave('crashed')
    page.on('close', closed)
    page.on('crash', crashed)
    const release = () => {
      page.off('close', closed)
      page.off('crash', crashed)
    }
    window.pages.set(page, { leave, learn: () => followed.learn(learn), changed: followed.changed, release })
    window.followed.changed()
  }

  function onContext(context: Context): void {
    if (windows.has(context)) return
    const idOf = stableId(newId)
    const show = (identity: BrowserIdentity) => {
      const id = idOf(identity, identity.window_id)
      window.id = id
      for (const page of window.pages.values()) page.changed()
      return windowPresence(browserWindows, id, () => context.pages().length, identity)
    }
    const learn = async () => {
      const identity = await asked(context, null)
      return identity && (() => show(identity))
    }
    const pageOpened = (page: P) => onPage(context, window, page)
    const closed = () => leaveContext(context)
    const window: Window<P> & { learn(): Promise<void> } = {
      id: null,
      followed: NOT_FOLLOWED,
      pages: new Map(),
      learn: () => window.followed.learn(learn),
      release() {
        context.off('page', pageOpened)
        context.off('close', closed)
        for (const { release } of window.pages.values()) release()
      },
    }
    windows.set(context, window)
    window.followed = follower.follow(learn)
    context.on('page', pageOpened)
    context.on('close', closed)
    for (const page of context.pages()) pageOpened(page)
  }

  function leaveContext(context: C): void {
    const window = windows.get(context)
    if (!window) return
    windows.delete(context)
    window.release()
    for (const page of window.pages.values()) page.leave()
    window.followed.leave()
  }

  /** Finds changes that no event has announced. */
  function look(): void {
    for (const context of browser.contexts()) onContext(context)
  }

  function onDisconnected(): void {
    isDisconnected = true
    for (const context of windows.keys()) leaveContext(context)
  }
  browser.on('context', onContext)
  browser.on('disconnected', onDisconnected)
  look()

  return {
    async identifyAgain(peer) {
      for (const [context, { learn, pages }] of windows) {
        if (context === peer) await learn()
        await pages.get(peer as P)?.learn()
      }
    },
    close() {
      browser.off('context', onContext)
      browser.off('disconnected', onDisconnected)
      for (const { release } of windows.values()) release()
      windows.clear()
      return follower.close()
    },
  }
}
