/** Where other agents call the business `default`. */
export const agentPath = '/a2a/agents/default'

const card = {
  name: 'Bench',
  description: 'Does nothing',
  skills: [{ id: 'nothing', name: 'Nothing', description: 'Does nothing' }],
}

/** Lets the server at this port serve A2A. */
export const addCard = async (port: number): Promise<void> => {
  const path = `http://127.0.0.1:${port}/admin/v1/businesses/default/agent-card`
  const headers = { 'content-type': 'application/json' }
  const { status } = await fetch(path, { method: 'PUT', headers, body: JSON.stringify(card) })
  if (status !== 200) throw new Error(`the card was answered with ${status}`)
}
