#include "stories/stories_text.h"

namespace sextant {

std::string_view story_themes_of_work() {
  return R"(
theme: farm
place: farm/on | garden/in | barn/in | greenhouse/in | orchard/in | rose bed/at | stable/in | shed/in | cornfield/in
  lawn/on
thing: horseshoe/lucky | watering can/green | egg basket/wicker | trowel/pointed | milk can/shiny | flower pot/clay
  straw hat/floppy | seed packet/paper | cowbell/loud | glove/leather | rake/long | garden gnome/cheerful | apple/rosy
  sunflower/tall
animal: chick/yellow/cheeped | ladybird/red/crawled up a stem | piglet/muddy/squealed | worm/pink/wriggled
  lamb/woolly/skipped about | butterfly/bright/fluttered its wings | calf/clumsy/swished its tail | bee/busy/hummed
  goose/bossy/hissed | caterpillar/hairy/munched a leaf
worker: farmer/he/his | gardener/she/her | milkmaid/she/her | florist/he/his | shepherdess/she/her | neighbour/she/her
  stable boy/he/his | park keeper/he/his
spot: under the hay | under the lettuce | behind the tractor | behind the compost heap | inside the trough
  inside the flower pot | between the pumpkins | between the tomatoes | beneath the henhouse | beneath the roses
  behind the haystack | under the wheelbarrow
skill: milk a cow/milking a cow | plant seeds/planting seeds | ride a pony/riding a pony
  water the flowers/watering the flowers | shear a sheep/shearing a sheep | mow the lawn/mowing the lawn
  plough a field/ploughing a field | prune the roses/pruning the roses | stack the hay/stacking the hay
  pull up weeds/pulling up weeds
trouble: tractor/would not start/cleaned the spark plug | wheelbarrow/tipped over and cracked/riveted a patch onto it
  gate/fell off its hinges/hung it on new hinges | greenhouse/lost a pane/slid in a new pane
  henhouse/lost its door/nailed together a new door | sprinkler/stopped spraying/rinsed out the nozzle
  scarecrow/lost its arm/stuffed a new sleeve with straw | trellis/broke under the vines/wired it together
scene: the cows grazed by the fence | bees buzzed around the lavender | the rooster crowed on the roof
  the roses were in full bloom | the wheat swayed in the fields | a sprinkler sprayed the lawn
  swallows swooped through the barn | petals fell onto the path | the pigs wallowed in the mud
  the tomatoes grew ripe and red | the windmill turned slowly | a blackbird sang on the gate
food: a glass of fresh milk | a bowl of strawberries | some boiled eggs | some crunchy carrots | a bowl of porridge
  a cucumber sandwich
sound: a loud moo | a quiet buzz | a frantic cackle | a snipping sound | a soft bleat | a crunching noise
make: build a scarecrow/built a silly scarecrow/scarecrow
  plant a flower bed/planted a flower bed of daisies/flower bed | carve a pumpkin/carved a grinning pumpkin/pumpkin
  build a birdhouse/built a wooden birdhouse/birdhouse | make butter/churned a tub of butter/butter
  lay a path/laid a winding path/path
fun: fed the chickens | smelled the roses | jumped into the hay | chased butterflies | picked apples
  rolled on the lawn | brushed the ponies | pulled up radishes

theme: castle
place: castle/in | throne room/in | courtyard/in | dungeon/in | drawbridge/on
thing: shield/wooden | goblet/golden | sword/blunt | royal seal/wax | glass slipper/tiny | horn/ivory | ruby/red
animal: unicorn/gentle/bowed its head | dragon/baby/puffed out smoke | falcon/royal/ruffled its feathers
  hound/faithful/thumped its tail | toad/enchanted/winked
worker: knight/he/his | queen/she/her | princess/she/her | jester/he/his
spot: under the throne | behind the tapestry | inside the cellar | between the battlements | beneath the drawbridge
  behind the suit of armour
skill: ride a horse/riding a horse | shoot an arrow/shooting an arrow | polish the armour/polishing the armour
  guard the gate/guarding the gate | blow the horn/blowing the horn
trouble: drawbridge/would not close/greased the chains | throne/lost an armrest/carved a new armrest
  catapult/broke its spring/wound a new spring | carriage/threw a wheel/rolled the wheel back
scene: banners fluttered from the towers | torches burned along the walls | the moat was deep and dark
  minstrels sang of heroes | the guards marched past | trumpets announced the queen
food: a leg of turkey | some plum pudding | a silver plate of figs
sound: a clank of chains | a ghostly groan | a rumbling snore
make: hold a feast/prepared a royal feast/feast | build a wooden horse/built a wooden horse on wheels/wooden horse
  sew a banner/sewed a banner with a lion/banner
fun: played knights | danced in the courtyard | explored the dungeon | bowed before the queen

theme: workshop
place: workshop/in | sawmill/at | toy shop/in | garage/in | smithy/in
thing: hammer/sturdy | spinning top/wooden | music box/tiny | tape measure/yellow | toolbox/steel | chisel/sharp
  puppet/jolly
animal: cricket/merry/chirped | tomcat/lazy/stretched its legs | termite/hungry/gnawed at a board
  sparrow/dusty/hopped about | dormouse/drowsy/rubbed its eyes
worker: carpenter/she/her | blacksmith/he/his | toymaker/he/his | inventor/she/her
spot: under the workbench | behind the anvil | inside the toolbox | between the planks | beneath the sawdust
  behind the paint cans
skill: saw a plank/sawing a plank | hammer a nail/hammering a nail | carve a spoon/carving a spoon
  sand the table/sanding the table | forge a key/forging a key
trouble: drill/stopped spinning/replaced the cord | rocking horse/lost a leg/carved a new leg
  robot/shut down/soldered a loose wire | cuckoo clock/ran backwards/turned a tiny cog
scene: sawdust covered the floor | sparks sprayed from the grindstone | the bellows wheezed
  tools hung neatly on the wall | the saw whined | fresh paint dripped from a brush
food: some bacon sandwiches | a bowl of potato stew | a mug of cider
sound: a rhythmic tapping | a grinding noise | a sudden twang
make: build a rocking chair/built a rocking chair of oak/rocking chair
  build a doll's house/built a splendid doll's house/doll's house | build a robot/put together a blinking robot/robot
fun: painted wooden blocks | tried out the toys | hammered nails | built towers of scraps

theme: stars
place: observatory/at | planetarium/in | rooftop/on | launch pad/at | space centre/at
thing: telescope/long | meteorite/black | star chart/blue | model rocket/tall | moon rock/grey | walkie talkie/orange
  space helmet/white
animal: alien/friendly/waved its antennae | robot dog/metal/beeped | space monkey/famous/floated upside down
  glow worm/bright/lit up | night owl/wise/turned its head
worker: astronaut/she/her | astronomer/he/his | pilot/she/her | engineer/he/his
spot: under the telescope | behind the control panel | inside the capsule | between the computers | beneath the dome
  behind the fuel tank
skill: find the North Star/finding the North Star | launch a rocket/launching a rocket
  fly a spaceship/flying a spaceship | count down from ten/counting down from ten
  land on the moon/landing on the moon
trouble: rocket/lost a fin/welded the fin back on | telescope/went blurry/wiped the lens
  radio/went silent/bent the antenna | space rover/tipped onto its side/turned it the right way up
scene: a comet streaked across the sky | the planets gleamed | the rocket roared into space | Saturn showed its rings
  screens flashed in the control room | the moon was round and full
food: some dried space fruit | a tube of peanut paste | a star of shortbread
sound: a crackling signal | a strange hum | a quick series of beeps
make: build a rocket/built a rocket from cardboard/rocket | make a star map/drew a star map on black paper/star map
  build a telescope/built a telescope from two lenses/telescope
fun: searched for comets | floated like astronauts | named new stars | counted the craters
)";
}

}  // namespace sextant
