/**
 * What a support team asks of an incident that a customer has sent: who is affected, what contradicts what, and what became
 * of the commands of one user. `node examples/incident/support.mjs examples/incident/incident.json [USER]`
 */

// #region support
import { readFile } from 'node:fs/promises'
import { createDiagnosticsRouter, noopAuth } from 'relayscope'
import { incidentComposition } from 'relayscope/incident'

/** Returns a function that requests a route of the incident. */
export async function openIncident(path) {
  const composition = incidentComposition(await readFile(path))
  const router = createDiagnosticsRouter({ ...composition, auth: noopAuth(), onError: null })
  return async (route) => (await router.fetch(new Request(`http://incident${route}`))).json()
}

export async function* report(path, user) {
  const request = await openIncident(path)
  const { extensions } = await request('/capabilities')
  const { clocks, missing } = extensions.incident
  yield `as of ${(clocks.node ?? clocks.observer).to}`
  for (const { route, reason } of missing) yield `not whole: ${route} (${reason})`
  const { items: findings } = await request('/findings')
  for (const { kind, subject } of findings) yield `${kind}: ${Object.values(subject).join(' / ')}`
  const { items: commands } = await request(`/delivery/commands?user_id=${encodeURIComponent(user)}&limit=500`)
  const states = [...new Set(commands.map(({ state }) => state))]
  for (const state of states)
    yield `commands of ${user} that are ${state}: ${commands.filter((command) => command.state === state).length}`
}
// #endregion

if (process.argv[1] === new URL(import.meta.url).pathname)
  for await (const line of report(process.argv[2], process.argv[3] ?? 'ada')) console.log(line)
