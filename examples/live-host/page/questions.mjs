/** Shows the questions of the demo to viewers that have the key, which is in the fragment of the printed address. */
const form = document.querySelector('#key')
const main = document.querySelector('#sections')

const element = (name, text) => Object.assign(document.createElement(name), { textContent: text })

async function show(key) {
  main.replaceChildren(element('p', 'The clients are starting…'))
  const response = await fetch('/questions.json', { headers: { 'x-admin-key': key } })
  form.hidden = response.status !== 403
  if (!response.ok) return main.replaceChildren(element('p', `The demo answers ${response.status}.`))
  const { sections } = await response.json()
  main.replaceChildren(
    ...sections.flatMap(({ title, lines }) => [element('h2', title), element('pre', lines.join('\n'))]),
  )
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  show(form.querySelector('input').value)
})

const [, given] = location.hash.split(/^#key=/)
// Neither the history nor a glance at the screen has the key.
if (given) history.replaceState(null, '', location.pathname)
if (given) show(decodeURIComponent(given))
else form.hidden = false
