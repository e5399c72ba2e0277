#include "data/stories_text.h"

namespace sextant {

std::string_view story_themes_of_town() {
  return R"(
theme: bakery
place: bakery/in | kitchen/in | mill/at | sweet shop/in | cafe/in
thing: rolling pin/smooth | cookie cutter/sharp | whisk/wire | apron/white | recipe/secret | cake tin/round
  jar/cracked
animal: mouse/grey/nibbled a crumb | kitten/white/mewed | puppy/spotted/begged for more
  ant/tiny/carried a sugar grain | canary/yellow/trilled
worker: baker/he/his | pastry cook/she/her | waiter/he/his | confectioner/she/her
spot: under the kitchen table | behind the flour sacks | inside the bread bin | between the loaves | beneath the tea towel
  behind the sugar jar
skill: knead dough/kneading dough | bake bread/baking bread | whip cream/whipping cream
  ice a cake/icing a cake | flip a pancake/flipping a pancake
trouble: oven/stayed cold/swept out the chimney | mixer/made a terrible noise/put in a new belt
  cake/sank in the middle/filled the hole with cream | teapot/lost its handle/stuck the handle back on
scene: flour drifted through the air | the bread smelled wonderful | butter melted in the pan
  buns cooled on the tray | the oven glowed | customers queued at the counter
food: a warm cinnamon bun | some almond cookies | a slice of apple pie
sound: a bubbling noise | a popping sound | a loud hiss
make: bake a cake/baked a cake with three layers/cake | make jam/cooked a pot of strawberry jam/jam
  build a gingerbread house/iced a gingerbread house/gingerbread house
fun: licked the spoons | rolled out the dough | cut out cookies | sprinkled sugar on the buns

theme: school
place: school/at | classroom/in | schoolyard/in | gym/in | science room/in
thing: pencil/sharp | ruler/straight | satchel/leather | marble/glass | notebook/neat | magnet/strong | lunch box/square
animal: hamster/brown/stuffed its cheeks | rabbit/white/wiggled its nose | guinea pig/fat/squeaked
  parakeet/talkative/said hello | snail/patient/left a silver trail
worker: teacher/she/her | caretaker/he/his | headmaster/he/his | librarian/she/her
spot: under the desk | behind the blackboard | inside the cupboard | between the books | beneath the coat hooks
  behind the piano
skill: spell long words/spelling long words | do sums/doing sums | write a poem/writing a poem
  tidy the shelves/tidying the shelves | draw a map of the world/drawing a map of the world
trouble: globe/rolled off the table/glued its stand | bell/would not ring/tightened a screw
  piano/lost a key/glued on a new key | projector/blew a fuse/changed the fuse
scene: chalk dust hung in the air | the children whispered and giggled | the bell rang for recess
  the teacher wrote on the blackboard | pens scratched on paper | the hall echoed with footsteps
food: a box of raisins | some buttered toast | a carton of milk
sound: a scraping noise | a quick tap | a nervous squeal
make: build a volcano/built a smoking volcano/volcano | write a play/wrote a short play/play
  paint a poster/painted a giant poster/poster
fun: skipped in the yard | played leapfrog | solved riddles | swapped stickers

theme: market
place: market/at | square/in | fountain/at | fruit stall/at | town hall/at
thing: coin/shiny | purse/velvet | vase/blue | bracelet/amber | umbrella/red | candle/scented | mirror/round
animal: pigeon/plump/cooed | cat/ginger/licked its paws | sparrow/bold/pecked at crumbs
  rat/clever/twitched its whiskers | lapdog/fluffy/yelped
worker: greengrocer/she/her | butcher/he/his | flower seller/she/her | mayor/he/his
spot: under the stall | behind the crates | inside the sack | between the cabbages | beneath the awning
  behind the scales
skill: weigh the apples/weighing the apples | sell flowers/selling flowers | count the change/counting the change
  juggle oranges/juggling oranges | carry the crates/carrying the crates
trouble: cart/lost a wheel/pushed the wheel back on | awning/came down/hung it up with string
  clock/stopped at noon/polished every wheel | fountain/ran dry/cleaned out the pipe
scene: the traders shouted their prices | people crowded around the stalls | the church bell struck noon
  water bubbled in the fountain | a busker played the accordion | the smell of spices filled the air
food: a bag of cherries | some ripe peaches | a paper cone of peanuts
sound: a muffled squeak | a clinking sound | a loud crash
make: make a fruit salad/mixed a colourful fruit salad/fruit salad | tie a bouquet/tied a bouquet of tulips/bouquet
  set up a stall/set up a stall with lemonade/stall
fun: tasted the grapes | strolled past the stalls | listened to the busker | tossed coins into the fountain

theme: library
place: library/in | reading room/in | bookshop/in | archive/in | attic/in
thing: bookmark/silk | diary/secret | atlas/dusty | pair of glasses/round | letter/sealed | inkwell/empty | key/rusty
animal: bookworm/tiny/nibbled a page | mouse/timid/squeaked | spider/black/spun a thread
  bat/sleepy/folded its wings | kitten/curious/purred
worker: librarian/she/her | author/he/his | printer/he/his | professor/she/her
spot: under the carpet | behind the shelves | inside the thick dictionary | between the pages | beneath the ladder
  behind the curtain
skill: read aloud/reading aloud | sort the books/sorting the books | bind a book/binding a book
  tell a story/telling a story | solve the puzzle/solving the puzzle
trouble: bookshelf/collapsed/propped it up with bricks | old book/lost its cover/pasted on a new cover
  reading lamp/flickered and died/found a new bulb | typewriter/jammed/freed the stuck letters
scene: pages turned softly | rain pattered on the skylight | dust danced in the light
  a clock ticked on the wall | readers sat deep in armchairs | it was as still as a whisper
food: some oat biscuits | a slice of fruit cake | a pot of black tea
sound: a rustling of paper | a gentle thud | a creaking noise
make: write a book/wrote a thin book/book | draw a comic/drew a funny comic/comic
  make a birthday card/made a birthday card/birthday card
fun: read about pirates | looked at the pictures | acted out a fairy tale | explored the shelves

theme: railway
place: station/at | platform/on | tunnel/at | signal box/in | level crossing/at
thing: ticket/pink | suitcase/battered | pocket watch/silver | timetable/torn | engine badge/brass | flag/green
  parcel/heavy
animal: poodle/elegant/yapped | jackdaw/thieving/hopped along | terrier/scruffy/dug a hole
  starling/glossy/chattered | weasel/slim/sniffed the air
worker: conductor/she/her | engine driver/he/his | porter/he/his | signalman/he/his
spot: under the bench | behind the ticket machine | inside the carriage | between the rails | beneath the platform
  behind the luggage
skill: drive the train/driving the train | switch the points/switching the points | stoke the boiler/stoking the boiler
  blow the whistle/blowing the whistle | check the tickets/checking the tickets
trouble: locomotive/ran out of steam/shovelled coal into the boiler | barrier/would not open/cranked it up by hand
  carriage/came uncoupled/hooked it on again | signal/turned red for no reason/reset the lever
scene: the train puffed out of the station | travellers hurried along the platform | the signal changed to green
  steam hissed from the engine | the loudspeaker crackled | the rails hummed
food: some cheese rolls | a cup of tomato soup | a bar of chocolate
sound: a long toot | a metallic clang | a scratching sound
make: build a model railway/built a long model railway/model railway | draw a route map/drew a tidy route map/route map
  make a cardboard train/glued together a cardboard train/cardboard train
fun: waved at the trains | counted the wagons | walked along the platform | looked out of the window

theme: circus
place: circus/at | big tent/in | ring/in | funfair/at | wagon camp/in
thing: juggling ball/striped | trumpet/golden | hoop/silver | clown nose/red | unicycle/tall | wand/magic | ribbon/pink
animal: elephant/baby/lifted its trunk | monkey/tiny/turned a somersault | poodle/trained/jumped through a hoop
  sea lion/clever/balanced a ball | pony/white/trotted in a circle
worker: clown/he/his | acrobat/she/her | ringmaster/he/his | juggler/she/her
spot: under the benches | behind the wagon | inside the costume trunk | between the tent ropes | beneath the trampoline
  behind the popcorn stand
skill: walk the tightrope/walking the tightrope | juggle three balls/juggling three balls | turn a cartwheel/turning a cartwheel
  ride a unicycle/riding a unicycle | tame a lion/taming a lion
trouble: trapeze/came down with a bump/knotted the ropes again | merry wheel/creaked and stopped/oiled the gears
  trampoline/had a tear/darned it with thick yarn | caravan/lost its brakes/blocked the wheels
scene: the clowns tumbled through the ring | the trumpets blared | the crowd roared with laughter
  sawdust flew up | acrobats somersaulted overhead | the lights twinkled around the tent
food: some candyfloss | a toffee apple | a bag of roasted nuts
sound: a mighty roar | a comical honk | a burst of laughter
make: plan a circus act/put on a daring circus act/act | build a human pyramid/stacked a wobbly human pyramid/pyramid
  sew a clown suit/sewed a baggy clown suit/suit
fun: laughed at the clowns | rode on the carousel | turned cartwheels | bounced on the trampoline
)";
}

}  // namespace sextant
