/** A host that captures itself: what its own router answers now becomes a file for a support team. */

// #region capture
import { writeFile } from 'node:fs/promises'
import { captureIncident } from 'relayscope/incident'

/** Writes what `router` answers to the caller with this key. Ids become pseudonyms; payloads and metadata are dropped. */
export async function captureTo(path, router, key) {
  const incident = await captureIncident(router, { headers: { 'x-admin-key': key }, redact: true })
  await writeFile(path, JSON.stringify(incident), { mode: 0o600 })
  return incident.missing
}
// #endregion
