/** What a page of the host asks for when it is opened: as JSON, so that no other page can ask the same. */
export async function askForOwn(path) {
  const response = await fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
  if (!response.ok) throw new Error(`the host answers ${response.status}`)
  return response.json()
}
