import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { ModelMessage } from '../../src/state/ports/model-messages.ts'
import { startFakeModel } from '../../test/support/fake-model/fake-model.ts'
import type { FakeMessage } from '../../test/support/fake-model/types.ts'
import { requestIn } from '../fleet/job.ts'
import { planStep } from '../fleet/scripted-models.ts'
import type { Play, Sighting } from './input.ts'

/**
 * The vendor of everybody, in a process of its own. It plays the bystander's jobs, and for a prompt with `play-NAME~` the
 * play that was put there; of those it remembers where their markers stood in prompts.
 */
type Scene = {
  play: Play
  markers: string[]
  asked: Record<string, number>
  sightings: Record<string, Sighting>
}
const scenes = new Map<string, Scene>()

const textOf = ({ content }: FakeMessage): string =>
  typeof content === 'string' ? content : JSON.stringify(content ?? '')
const fenced = /<(data-[0-9a-f]{6}) [^>]*>\n[\s\S]*?\n<\/\1>/g

const look = ({ markers, sightings }: Scene, role: string, texts: readonly string[]): void => {
  for (const text of texts) {
    const outside = text.replaceAll(fenced, '')
    for (const marker of markers) {
      if (!text.includes(marker)) continue
      const sighting = sightings[marker] ?? { times: 0, outside: [] }
      sightings[marker] = sighting
      sighting.times++
      const at = outside.indexOf(marker)
      if (at >= 0 && sighting.outside.length < 3)
        sighting.outside.push(`${role}: …${outside.slice(Math.max(0, at - 80), at + 40)}…`)
    }
  }
}

const model = await startFakeModel({
  script: ({ role, messages, tools }) => {
    const texts = messages.map(textOf)
    const name = texts.flatMap((text) => [...text.matchAll(/play-([\w.-]+)~/g)]).at(-1)?.[1]
    const scene = name === undefined ? undefined : scenes.get(name)
    if (!scene) {
      if (role !== 'planner' || !requestIn(messages as ModelMessage[])) return
      const { text, calls } = planStep(messages as ModelMessage[], '')
      return {
        text,
        delayMs: 20,
        tool_calls: calls.map((call) => ({ ...call, arguments: JSON.parse(call.arguments) })),
      }
    }
    look(scene, role, [...texts, JSON.stringify(tools)])
    const replies = scene.play[role] ?? []
    const nth = (scene.asked[role] ?? 0) + 1
    scene.asked[role] = nth
    return replies[Math.min(nth, replies.length) - 1]
  },
})

const control = createServer(async (request, response) => {
  const name = (request.url ?? '').slice(1)
  if (request.method === 'PUT') {
    scenes.set(name, {
      ...((await json(request)) as Pick<Scene, 'play' | 'markers'>),
      asked: {},
      sightings: {},
    })
    return void response.end('{}')
  }
  response.end(JSON.stringify(scenes.get(name)?.sightings ?? {}))
})
control.listen(0, '127.0.0.1', () =>
  process.send?.({ event: 'ready', port: model.port, control: (control.address() as AddressInfo).port }),
)
process.once('disconnect', () => process.exit(1))
