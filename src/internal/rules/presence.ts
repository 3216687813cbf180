/** What reports, closes and tasks do to contexts and windows: written once, run atomically by each store. */

import {
  type BrowserWindow,
  type BrowserWindowRegistry,
  ReportBrowserWindowInput,
  reportedAttributes,
} from '../contract/browser-windows.js'
import {
  type ClosedState,
  type Context,
  ContextEndReason,
  type ContextRegistry,
  isLost,
  LOST_MS,
  ReportContextInput,
} from '../contract/contexts.js'
import { Id } from '../contract/ids.js'
import { parseInput } from '../contract/options.js'
import { Refusal } from '../refusal.js'
import type { Change, Owner, Records, Step } from './records.js'

const renew = <R>(record: R): Change<R, R> => ({ record, renews: true, answer: record })
const amend = <R>(record: R): Change<R, R> => ({ record, answer: record })

function requireOwner(known: Owner | undefined, { user_id, client_id }: Owner): void {
  if (known && (known.user_id !== user_id || known.client_id !== client_id))
    throw new Refusal('identity_conflict', 'the id belongs to another client')
}

/** How long a record is readable after its last report or its end. */
export const keptMs = (record: ClosedState, ttlMs: number): number =>
  isLost(record) ? Math.max(ttlMs, LOST_MS) : record.status === 'closed' ? ttlMs : 2 * ttlMs

export const contextRules = (records: Records<Context>): ContextRegistry => ({
  async report(given) {
    const input = parseInput(ReportContextInput, given)
    const step: Step<Context, Context> = (known, at) => {
      requireOwner(known, input)
      const { ownership = input.ownership, created_at = at } = known ?? {}
      const { task_id = null, task_assigned_at = null } = known?.status === 'closed' ? {} : (known ?? {})
      const own = { ownership, task_id, task_assigned_at, created_at, updated_at: at }
      return renew({ ...input, status_reason: null, ...own })
    }
    return records.change(input.context_id, step, input)
  },
  async close(contextId, reason = 'closed') {
    const status_reason = parseInput(ContextEndReason, reason)
    return records.change(contextId, (known, at): Change<Context, boolean> => {
      if (!known || known.status === 'closed') return { answer: false }
      const record: Context = { ...known, status: 'closed', status_reason, updated_at: at }
      const released = isLost(record) ? record : { ...record, task_id: null, task_assigned_at: null }
      return { record: released, renews: true, answer: true }
    })
  },
  async assignTask(contextId, taskId) {
    const task_id = parseInput(Id, taskId)
    return records.change(contextId, (known, at): Change<Context, Context | null> => {
      if (!known || known.status === 'closed' || known.ownership !== 'worker') return { answer: null }
      if (known.task_id !== null) return { answer: known.task_id === task_id ? known : null }
      return amend({ ...known, task_id, task_assigned_at: at })
    })
  },
  releaseTask: (contextId) =>
    records.change(contextId, (known): Change<Context, Context | null> => {
      if (!known || known.task_id === null) return { answer: null }
      return amend({ ...known, task_id: null, task_assigned_at: null })
    }),
})

export const browserWindowRules = (records: Records<BrowserWindow>): BrowserWindowRegistry => ({
  async report(given) {
    const input = parseInput(ReportBrowserWindowInput, given)
    const step: Step<BrowserWindow, BrowserWindow> = (known, at) => {
      requireOwner(known, input)
      const { ownership = input.ownership } = known ?? {}
      const attributes = reportedAttributes(input, known)
      return renew({ ...input, ...attributes, ownership, status: 'open', counts_source: 'snapshot', updated_at: at })
    }
    return records.change(input.window_id, step, input)
  },
  close: (windowId) =>
    records.change(windowId, (known, at) => {
      if (!known || known.status === 'closed') return { answer: false }
      // A closed window has no focus; one that never reported it has none to lose.
      const focused = known.focused === null ? null : false
      return { record: { ...known, status: 'closed', focused, updated_at: at }, renews: true, answer: true }
    }),
})
