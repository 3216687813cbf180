/** A program that does everything right while others do not: whatever it is refused is a finding. */
import { createCooperativeSiteClient } from '../../src/browser/index.js'
import type { Targets } from './fuzz-requests.js'

export interface PoliteClient {
  /** Asks each surface something and holds the answers to what they must be. Resolves to what was not. */
  round(): Promise<string[]>
  /** Waits for the events that are under way, and leaves. */
  leave(): Promise<string[]>
}

/** Session and site belong to dora, who is not named by any attack. */
export async function createPoliteClient({
  ports,
  prefix,
  key,
  token,
  politeSessionId: session_id,
}: Targets): Promise<PoliteClient> {
  const urls = {
    diagnostics: `http://127.0.0.1:${ports.diagnostics}${prefix}`,
    relay: `http://127.0.0.1:${ports.relay}/relay`,
    control: `http://127.0.0.1:${ports.control}`,
  }
  const json = { 'content-type': 'application/json' }
  const left = new AbortController()
  const faults: string[] = []
  const events = new Set<number>()
  let missed = 0
  let rounds = 0
  let arrived: () => void = () => {}
  const site = createCooperativeSiteClient({
    baseUrl: urls.relay,
    sessionId: session_id,
    headers: { authorization: 'Bearer dora' },
  })
  await new Promise<void>((resolve) => {
    site.subscribe({
      onReady: () => resolve(),
      onEvent({ data }) {
        if (typeof data === 'object' && data !== null && 'polite' in data) events.add(data.polite as number)
        arrived()
      },
      onGap({ dropped }) {
        missed += dropped ?? 0
        arrived()
      },
      onEnd: ({ reason }) => void faults.push(`its stream ended: ${reason}`),
      signal: left.signal,
    })
  })

  async function expectStatus(wanted: number, url: string, init: RequestInit): Promise<void> {
    try {
      const answer = await fetch(url, init)
      const text = await answer.text()
      if (answer.status !== wanted)
        faults.push(`${init.method ?? 'GET'} ${url}: ${answer.status} ${text.slice(0, 200)}`)
    } catch (error) {
      faults.push(`${url}: ${error}`)
    }
  }

  const take = () => faults.splice(0)
  return {
    async round() {
      const n = ++rounds
      const own = { authorization: `Bearer ${token}`, ...json }
      const dora = { authorization: 'Bearer dora', ...json }
      const message = {
        message_id: `polite-${n}`,
        kind: 'event',
        stream: 'sites/polite-notes/events',
        client_id: 'laptop',
        instance_id: 'laptop-1',
        payload: { name: 'note_changed', data: { polite: n } },
      }
      const parameters = JSON.stringify({ parameters: { id: n } })
      await Promise.all([
        expectStatus(200, `${urls.diagnostics}/connections`, { headers: { 'x-admin-key': key } }),
        expectStatus(200, `${urls.diagnostics}/users/alice/summary`, { headers: { 'x-admin-key': key } }),
        expectStatus(202, `${urls.relay}/messages`, { method: 'POST', headers: dora, body: JSON.stringify(message) }),
        expectStatus(n === 1 ? 201 : 200, `${urls.control}/sites/polite`, {
          method: 'PUT',
          headers: own,
          body: '{"mode":"observe"}',
        }),
        expectStatus(200, `${urls.relay}/sessions/${session_id}/actions/archive_note`, {
          method: 'POST',
          headers: dora,
          body: parameters,
        }),
      ])
      return take()
    },
    async leave() {
      // Events that waited behind too many others are counted by a gap, which others' events may be in as well.
      const isAll = () => events.size + missed >= rounds
      while (!isAll()) {
        await new Promise<void>((resolve) => {
          arrived = resolve
          setTimeout(resolve, 5_000).unref()
        })
        if (!isAll()) faults.push(`${rounds - events.size} events were neither delivered nor counted`)
        break
      }
      left.abort()
      return take()
    },
  }
}
