import { type ReactNode, useMemo } from 'react'
import { useTexts } from '../i18n/index.ts'
import { Scroll, Status, Text } from '../parts/basics.tsx'
import { Drawing } from '../parts/drawing.tsx'
import type { Todo } from '../types.ts'

/** More than this is unreadable as a picture. */
const mostDrawn = 80

/** The longest chain of tasks that wait for each other. */
const findCriticalPath = (todos: readonly Todo[]): Set<string> => {
  const path = new Set<string>()
  const waitsFor = (before: Todo) => todos.filter(({ dependencies }) => dependencies.includes(before.id))
  const longest = (some: readonly Todo[]): Todo | undefined =>
    some.reduce<Todo | undefined>(
      (best, todo) => (todo.critical_path_length > (best?.critical_path_length ?? 0) ? todo : best),
      undefined,
    )
  for (let todo = longest(todos); todo && !path.has(todo.id); todo = longest(waitsFor(todo)))
    path.add(todo.id)
  return path
}

/** The plan: as a graph, and as a list. */
export default function Todos({ todos }: { todos: Todo[] }): ReactNode {
  const { t } = useTexts()
  const critical = useMemo(() => findCriticalPath(todos), [todos])
  const { boxes, arrows } = useMemo(() => {
    const ids = new Set(todos.map(({ id }) => id))
    return {
      boxes: todos.map(({ id, task, status }) => ({
        id,
        text: id,
        note: task.length > 28 ? `${task.slice(0, 27)}…` : task,
        look: `${status}${critical.has(id) ? ' critical' : ''}`,
      })),
      arrows: todos.flatMap(({ id, dependencies }) =>
        dependencies
          .filter((from) => ids.has(from))
          .map((from) => ({
            from,
            to: id,
            look: critical.has(from) && critical.has(id) ? 'critical' : 'plain',
          })),
      ),
    }
  }, [todos, critical])
  if (todos.length === 0) return <p role="status">{t.noTodos}</p>
  return (
    <>
      {todos.length <= mostDrawn ? (
        <Drawing boxes={boxes} arrows={arrows} label={t.todos} />
      ) : (
        <p role="status">{t.manyTodos}</p>
      )}
      <Scroll label={t.todos}>
        <table>
          <thead>
            <tr>
              <th>id</th>
              <th>{t.status}</th>
              <th>{t.todos}</th>
              <th>{t.dependsOn}</th>
              <th className="end">{t.attempts}</th>
            </tr>
          </thead>
          <tbody>
            {todos.map((todo) => (
              <tr key={todo.id}>
                <td>
                  <Text>{todo.id}</Text> {critical.has(todo.id) && <span className="mark">{t.critical}</span>}
                </td>
                <td>
                  <Status of={todo.status} />
                </td>
                <td className="wide">
                  <Text most={500}>{todo.task}</Text>
                </td>
                <td>
                  <Text>{todo.dependencies.join(', ')}</Text>
                </td>
                <td className="end num">
                  {todo.retry} / {todo.max_retry}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  )
}
